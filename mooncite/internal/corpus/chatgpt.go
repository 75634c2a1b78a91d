package corpus

import (
	"context"
	"time"
)

// Export is where the ChatGPT export stands below the HOME.
const Export = "incoming/chatgpt-share-archive/export-2025-06-01/conversations.json"

// chatgpt writes one export: an array of conversations, each a tree of messages
// without side branches.
func (g *generator) chatgpt(ctx context.Context, budget int64) error {
	if err := g.open(Export); err != nil {
		return err
	}
	g.out.put([]byte("["))
	messages := 0
	for n := 0; g.out.bytes < budget; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := g.rec.reset()
		if n > 0 {
			o.raw(",\n")
		}
		g.now = first.Add(time.Duration(g.r.Float64() * float64(span))).Truncate(time.Millisecond)
		started := g.now
		o.raw(`{"title":`).str(cut(pick(g.r, g.words.sentences), 40)).raw(`,"create_time":`).secs(started).raw(`,"mapping":{`)
		ids := make([]string, between(g.r, 3, 41))
		for i := range ids {
			ids[i] = g.uuid()
		}
		for i, id := range ids {
			if i > 0 {
				o.raw(",")
			}
			o.str(id).raw(`:{"id":`).str(id).raw(`,"parent":`)
			if i == 0 {
				o.raw("null")
			} else {
				o.str(ids[i-1])
			}
			o.raw(`,"children":[`)
			if i+1 < len(ids) {
				o.str(ids[i+1])
			}
			o.raw(`],"message":`)
			switch {
			case i == 0:
				o.raw("null")
			case i%2 == 1:
				g.now = g.now.Add(time.Duration(between(g.r, 4, 300)) * time.Second)
				chatgptMessage(o, id, "user", g.prose(between(g.r, 60, 400), "\n"), g.now)
			default:
				g.now = g.now.Add(time.Duration(between(g.r, 4, 300)) * time.Second)
				chatgptMessage(o, id, "assistant", g.prose(between(g.r, 300, 2600), "\n"), g.now)
			}
			o.raw("}")
		}
		messages += len(ids) - 1
		o.raw(`},"update_time":`).secs(g.now)
		g.out.put(chatgptEnd(o, ids[len(ids)-1], g.uuid()).b)
	}
	g.out.put([]byte("]\n"))
	g.out.records = messages
	return g.shut()
}

func chatgptMessage(o *record, id, role string, said []byte, at time.Time) *record {
	o.raw(`{"id":`).str(id).raw(`,"author":{"role":`).str(role).raw(`,"name":null,"metadata":{}},"create_time":`).secs(at)
	o.raw(`,"content":{"content_type":"text","parts":[`).text(said)
	return o.raw(`]},"status":"finished_successfully","weight":1.0,"metadata":{},"recipient":"all"}`)
}

func chatgptEnd(o *record, leaf, conversation string) *record {
	return o.raw(`,"current_node":`).str(leaf).raw(`,"conversation_id":`).str(conversation).raw(`,"id":`).str(conversation).raw(`,"default_model_slug":"m"}`)
}
