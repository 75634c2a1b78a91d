package notes

import (
	"context"
	"encoding/json"
	"fmt"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type todo struct {
	ID       string `json:"id" minLength:"1" maxLength:"64" doc:"An id that the writer of the list chose."`
	Content  string `json:"content" minLength:"1" maxLength:"500"`
	Status   string `json:"status" enum:"pending|in_progress|completed"`
	Priority string `json:"priority,omitempty" enum:"high|medium|low"`
}

type todoWriteIn struct {
	Todos []todo `json:"todos" maxItems:"100" doc:"The whole list: it replaces the one before."`
}

type todoWriteOut struct {
	Count      int    `json:"count"`
	InProgress int    `json:"inProgress"`
	UpdatedAt  string `json:"updatedAt"`
}

func (s *Service) todoWrite() contract.Op {
	return contract.Read(contract.Def{
		Name: "todo_write", Title: "Write the to-do list", Gateway: "dodo_write",
		Doc:   "Replaces the workspace's to-do list, which the next session can read. No file changes.",
		Scope: contract.ScopeWrite, Class: contract.ClassPlan, Idempotent: true,
	}, func(ctx context.Context, _ contract.Call, in todoWriteIn) (a contract.Answer[todoWriteOut], err error) {
		seen, texts := map[string]bool{}, []*string(nil)
		for i, t := range in.Todos {
			if seen[t.ID] {
				return a, fault.New(contract.InvalidInput, "todos[%d].id is that of an earlier entry", i).WithHint("give each entry an id of its own")
			}
			seen[t.ID] = true
			texts = append(texts, &in.Todos[i].Content)
			if t.Status == "in_progress" {
				a.Data.InProgress++
			}
		}
		a.Warnings = hide(texts...)
		list, err := op.Encode(in.Todos)
		if err != nil {
			return a, err
		}
		updated, err := s.store.SetTodos(ctx, s.workspace, list)
		if err != nil {
			return a, err
		}
		a.Data.Count, a.Data.UpdatedAt = len(in.Todos), stamp(updated)
		return a, nil
	})
}

type todoReadIn struct{}

type todoReadOut struct {
	Todos     []todo  `json:"todos"`
	UpdatedAt *string `json:"updatedAt" doc:"Null when there is no list."`
	Note      string  `json:"note,omitempty"`
}

func (s *Service) todoRead() contract.Op {
	return contract.Read(contract.Def{
		Name: "todo_read", Title: "Read the to-do list", Gateway: "dodo_read",
		Doc:   "Reads the workspace's to-do list, as an earlier session left it.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, _ contract.Call, _ todoReadIn) (a contract.Answer[todoReadOut], err error) {
		list, updated, err := s.store.Todos(ctx, s.workspace)
		if err != nil || list == nil {
			return a, err
		}
		if err := json.Unmarshal(list, &a.Data.Todos); err != nil {
			return a, fmt.Errorf("read the stored list: %w", err)
		}
		at := stamp(updated)
		a.Data.UpdatedAt, a.Data.Note = &at, untrusted
		return a, nil
	})
}
