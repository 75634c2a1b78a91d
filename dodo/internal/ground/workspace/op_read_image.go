package workspace

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type imageInput struct {
	Path     string `json:"path" maxLength:"1024" doc:"The picture, relative to the workspace's root."`
	MaxBytes int64  `json:"maxBytes" min:"1024" max:"8388608" default:"2097152" doc:"The largest file to give."`
}

type imageOutput struct {
	Path     string `json:"path"`
	MIMEType string `json:"mimeType" doc:"What its first bytes say it is."`
	Bytes    int    `json:"bytes" doc:"Size of the file."`
}

func (s *Service) readImage() contract.Op {
	return contract.Read(contract.Def{
		Name: "read_image", Title: "Read a picture", Gateway: "dodo_read",
		Doc:   "Shows a PNG, JPEG, GIF or WebP file: the answer carries the picture itself. Its bytes say what it is, not its name.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(_ context.Context, _ contract.Call, in imageInput) (contract.Answer[imageOutput], error) {
		none := contract.Answer[imageOutput]{}
		p, err := ParsePath(in.Path)
		if err != nil {
			return none, err
		}
		data, _, err := s.tree.Read(p, in.MaxBytes)
		if f := fault.From(err); f != nil && f.Code == contract.FileTooLarge {
			return none, f.WithHint("ask with a larger maxBytes, at most 8388608")
		}
		if err != nil {
			return none, err
		}
		kind := text.Detect(data, true)
		switch kind.MIME {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return none, fault.New(contract.UnsupportedEncoding, "the file is no PNG, JPEG, GIF or WebP picture").
				WithHint("read_files says what it is").With("path", p.Shown())
		}
		return contract.Answer[imageOutput]{
			Data:   imageOutput{Path: p.Shown(), MIMEType: kind.MIME, Bytes: len(data)},
			Blocks: []op.Block{{MIME: kind.MIME, Data: data}},
		}, nil
	})
}
