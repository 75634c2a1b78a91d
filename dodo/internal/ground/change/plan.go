package change

import (
	"time"

	"localmcp/dodo/internal/contract"
)

// A Plan is what every file of a change is and will be. A stored one never changes; its hash
// says that it is the one that was shown.
type Plan struct {
	ID, Hash         string
	Workspace, Epoch string
	Principal        string // the grant that made it; only that one may apply it
	Source           string // the operation that made it
	Created, Expires time.Time
	Files            []File

	undoes  string   // of a rollback: the changeset it takes back
	remarks []string // what the caller should be told beside the notes of files
}

// A File is one path of a plan.
type File struct {
	Action     Action
	Path, Dest string // as workspace.Path writes them; Dest only of a Move
	// The hash and size in bytes of what is there and of what will be; empty where there is
	// no file.
	BeforeHash, AfterHash   string
	BytesBefore, BytesAfter int64
	// Parents makes the missing directories on the way.
	Parents bool

	comesBack     bool   // with its mode; otherwise it gets what is usual for new ones
	mode          uint32 // permission bits of what comes back
	body          extent // where a stored plan keeps after
	before, after []byte // contents of a Create or a Modify; before is for showing the difference only
	notes         []string
}

// An extent is a part of a plan's file of contents.
type extent struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// Risk is low, medium or high: what could be lost without the backup.
func (p *Plan) Risk() string {
	risk := "low"
	for _, f := range p.Files {
		switch f.Action {
		case Delete:
			return "high"
		case Modify, Move:
			risk = "medium"
		}
	}
	return risk
}

// Summary is one line without text from outside.
func (p *Plan) Summary() string {
	var n [6]int
	for _, f := range p.Files {
		switch f.Action {
		case Create:
			n[0]++
		case Modify:
			n[1]++
		case Delete:
			n[2]++
		case Move:
			n[3]++
		case MakeDir:
			n[4]++
		case RemoveDir:
			n[5]++
		}
	}
	text := ""
	for i, words := range [6][2]string{
		{"create %d file", "create %d files"}, {"modify %d file", "modify %d files"}, {"delete %d file", "delete %d files"},
		{"move %d file", "move %d files"}, {"make %d directory", "make %d directories"}, {"remove %d directory", "remove %d directories"},
	} {
		text = counted(text, words, n[i])
	}
	return p.Source + ": " + text
}

// payload is what a plan's hash is of, beside its id, and what the database keeps.
type payload struct {
	Workspace string       `json:"workspace"`
	Epoch     string       `json:"epoch"`
	Principal string       `json:"principal"`
	Source    string       `json:"source"`
	Created   int64        `json:"created"` // milliseconds
	Expires   int64        `json:"expires"`
	Files     []planedFile `json:"files"`
}

type planedFile struct {
	Action      Action `json:"action"`
	Path        string `json:"path"`
	Dest        string `json:"dest,omitempty"`
	BeforeHash  string `json:"beforeHash,omitempty"`
	AfterHash   string `json:"afterHash,omitempty"`
	BytesBefore int64  `json:"bytesBefore"`
	BytesAfter  int64  `json:"bytesAfter"`
	Parents     bool   `json:"parents,omitempty"`
	Body        extent `json:"body"`
}

func (p *Plan) payload() payload {
	out := payload{
		Workspace: p.Workspace, Epoch: p.Epoch, Principal: p.Principal, Source: p.Source,
		Created: p.Created.UnixMilli(), Expires: p.Expires.UnixMilli(), Files: make([]planedFile, len(p.Files)),
	}
	for i, f := range p.Files {
		out.Files[i] = planedFile{f.Action, f.Path, f.Dest, f.BeforeHash, f.AfterHash, f.BytesBefore, f.BytesAfter, f.Parents, f.body}
	}
	return out
}

// plan is the plan of a stored payload.
func (in payload) plan(id, hash string) *Plan {
	p := &Plan{
		ID: id, Hash: hash, Workspace: in.Workspace, Epoch: in.Epoch, Principal: in.Principal, Source: in.Source,
		Created: time.UnixMilli(in.Created).UTC(), Expires: time.UnixMilli(in.Expires).UTC(), Files: make([]File, len(in.Files)),
	}
	for i, f := range in.Files {
		p.Files[i] = File{
			Action: f.Action, Path: f.Path, Dest: f.Dest, BeforeHash: f.BeforeHash, AfterHash: f.AfterHash,
			BytesBefore: f.BytesBefore, BytesAfter: f.BytesAfter, Parents: f.Parents, body: f.Body,
		}
	}
	return p
}

// digest is the plan's hash.
func (p *Plan) digest() (string, error) {
	return contract.Digest(struct {
		PlanID  string  `json:"planId"`
		Payload payload `json:"payload"`
	}{p.ID, p.payload()})
}
