package transcript

import (
	"bytes"
	"testing"

	"localmcp/mooncite/internal/evidence"
)

// fuzzFiles are the places a file can have; the first byte of the input picks one.
var fuzzFiles = []File{
	{evidence.Pi, "--w--/2031_s1.jsonl"},
	{evidence.OMP, "-w/2031_s1.jsonl"},
	{evidence.OMP, "-w/2031_s1/Scout.jsonl"},
	{evidence.Claude, "-w/11111111-1111-4111-8111-111111111111.jsonl"},
	{evidence.Claude, "-w/s/subagents/agent-1.jsonl"},
	{evidence.Codex, "2031/05/01/rollout-2031-05-01T10-00-00-11111111-1111-4111-8111-111111111111.jsonl"},
	{evidence.Codex, "rollout-2025-06-01-11111111-1111-4111-8111-111111111111.json"},
	{evidence.ChatGPT, "conversations.json"},
}

func FuzzParsers(f *testing.F) {
	for _, x := range fixtures(f) {
		if len(x.data) > 64<<10 {
			continue
		}
		for i, file := range fuzzFiles {
			if file.Origin == x.file.Origin {
				f.Add(append([]byte{byte(i)}, x.data...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		file, data := fuzzFiles[int(in[0])%len(fuzzFiles)], in[1:]
		if lookup(file.Origin).open == nil {
			return
		}
		got, err := read(file, data, Position{}, nil)
		if err != nil {
			return
		}
		checkEntries(t, file, data, got)
		if ShapeOf(file) == Document || got.res.State == nil {
			return
		}
		if cut := bytes.LastIndexByte(data[:len(data)/2], '\n') + 1; cut > 0 {
			if _, err := read(file, data[:cut], Position{}, nil); err == nil {
				checkResume(t, file, data, cut, got)
			}
		}
	})
}
