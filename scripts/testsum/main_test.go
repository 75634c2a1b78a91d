package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const stream = `{"Action":"start","Package":"localmcp/a"}
{"Action":"run","Package":"localmcp/a","Test":"TestX"}
{"Action":"output","Package":"localmcp/a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"localmcp/a","Test":"TestX","Output":"    x_test.go:1: no bees here\n"}
{"Action":"output","Package":"localmcp/a","Test":"TestX","Output":"--- SKIP: TestX (0.00s)\n"}
{"Action":"skip","Package":"localmcp/a","Test":"TestX"}
{"Action":"pass","Package":"localmcp/a","Test":"TestY"}
{"Action":"pass","Package":"localmcp/a","Elapsed":1.25}
{"Action":"skip","Package":"localmcp/empty"}
`

func TestSum(t *testing.T) {
	const fail = `{"Action":"output","Package":"localmcp/a","Test":"TestZ","Output":"broken\n"}
{"Action":"fail","Package":"localmcp/a","Test":"TestZ"}
`
	const unbuilt = `{"ImportPath":"localmcp/b","Action":"build-output","Output":"b.go:1: no\n"}
{"Action":"fail","Package":"localmcp/b","FailedBuild":"localmcp/b"}
`
	for name, tc := range map[string]struct {
		in, list string
		strict   bool
		ok       bool
		want     string
	}{
		"not strict":    {stream, "", false, true, "skip  localmcp/a TestX: x_test.go:1: no bees here\n"},
		"not listed":    {stream, "a TestXY # other", true, false, "SKIP  localmcp/a TestX: x_test.go:1: no bees here\n"},
		"listed":        {stream, "# head\n\na TestX # bees", true, true, "skip  1x a TestX: bees\n"},
		"listed openly": {stream, "a Test* # bees", true, true, "1 passed, 0 failed, 1 skipped\n"},
		"failed":        {stream + fail, "", false, false, "broken\n1 passed, 1 failed, 1 skipped\n"},
		"not built":     {stream + unbuilt, "", false, false, "b.go:1: no\nFAIL  localmcp/b"},
		"nothing":       {"", "", false, false, "0 passed"},
	} {
		var out strings.Builder
		ok, err := sum(strings.NewReader(tc.in), &out, tc.list, tc.strict)
		if err != nil || ok != tc.ok || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: %v %v\n%s", name, ok, err, cmp.Diff(tc.want, out.String()))
		}
	}
	if _, err := sum(strings.NewReader(""), new(strings.Builder), "a TestX", true); err == nil {
		t.Error("a line without a reason is taken")
	}
}
