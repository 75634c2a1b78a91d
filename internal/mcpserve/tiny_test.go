package mcpserve_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

// The test binary is also the tiny server: the subprocess tests start it again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "tiny-server" {
		if err := mcpserve.New(tiny()).ServeStdio(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func tinyCommand(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, "tiny-server"}
}

type echoIn struct {
	Text string `json:"text" doc:"What to say." maxLength:"1000"`
}

type echoOut struct {
	Text string `json:"text" doc:"What was said."`
}

type slowIn struct {
	Millis   int  `json:"millis" doc:"How long." min:"0" max:"60000" default:"100"`
	Stubborn bool `json:"stubborn,omitempty" doc:"Ignore cancellation."`
}

type slowOut struct {
	Steps int `json:"steps"`
}

type longIn struct {
	Count int `json:"count" min:"0" max:"100000" default:"10"`
}

type longOut struct {
	Total        int        `json:"total"`
	Lines        []string   `json:"lines"`
	Note         *string    `json:"note"`
	ResultDetail *op.Detail `json:"resultDetail,omitempty"`
}

func (l longOut) Text() string {
	return fmt.Sprintf("%d lines, %d shown\n%s", l.Total, len(l.Lines), strings.Join(l.Lines, "\n"))
}

func (l longOut) Fit(max int, detail *op.Detail) any {
	l.ResultDetail = detail
	for !op.Fits(l, max) && len(l.Lines) > 0 {
		l.Lines = l.Lines[:len(l.Lines)*9/10]
	}
	return l
}

func tiny() mcpserve.Options {
	echo := op.New(op.Spec{Name: "echo", Title: "Echo", Doc: "Says what it hears.", ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ op.Call, in echoIn) (echoOut, error) {
			fmt.Println("a stray line for stdout")
			switch in.Text {
			case "panic":
				panic("the secret is 42")
			case "fault":
				return echoOut{}, fault.New("not_today", "it does not work today").WithHint("Try tomorrow.")
			case "bug":
				return echoOut{}, fmt.Errorf("open /home/me/secret: gone")
			}
			return echoOut(in), nil
		})
	slow := op.New(op.Spec{Name: "slow", Title: "Slow", Doc: "Takes its time.", ReadOnly: true, Idempotent: true},
		func(ctx context.Context, c op.Call, in slowIn) (slowOut, error) {
			const step = 10 * time.Millisecond
			steps := in.Millis / 10
			for i := range steps {
				select {
				case <-time.After(step):
				case <-ctx.Done():
					if !in.Stubborn {
						return slowOut{}, ctx.Err()
					}
					time.Sleep(step)
				}
				c.Report(float64(i+1), float64(steps), "working")
			}
			return slowOut{steps}, nil
		})
	long := op.New(op.Spec{Name: "long", Title: "Long", Doc: "Answers at length.", ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ op.Call, in longIn) (longOut, error) {
			out := longOut{Total: in.Count}
			for i := range in.Count {
				out.Lines = append(out.Lines, fmt.Sprintf("line %d of text", i))
			}
			return out, nil
		})
	return mcpserve.Options{
		Name: "tiny", Title: "Tiny", Version: "1.2.3", Instructions: "A tiny server for tests.",
		Set:       op.NewSet(echo, slow, long),
		Artifacts: mcpserve.Artifacts{Scheme: "tiny-result", Kind: "tiny_result_artifact"},
	}
}
