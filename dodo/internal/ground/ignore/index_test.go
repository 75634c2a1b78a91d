package ignore_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/ignore"
)

// Many rules say together what each of them says alone, the last one first.
func TestManyRulesAreAsOneByOne(t *testing.T) {
	decisions := 0
	for seed := range 60 {
		rnd := rand.New(rand.NewPCG(11, uint64(seed)))
		parse := []func([]byte, string) *ignore.Rules{ignore.Parse, ignore.ParseFold}[seed%2]
		var lines []string
		for len(lines) < 150 {
			for line := range strings.Lines(randomRules(rnd)) {
				if rnd.IntN(2) == 0 { // fewer rules that take all
					line = parts[rnd.IntN(len(parts))] + line
				}
				lines = append(lines, line)
			}
		}
		all := parse([]byte(strings.Join(lines, "")), "")
		paths, _ := randomTree(rnd)
		for _, p := range paths {
			name, dir := strings.CutSuffix(p, "/")
			var ignored, decided bool
			for i := len(lines) - 1; i >= 0 && !decided; i-- {
				ignored, decided = parse([]byte(lines[i]), "").Match(name, dir)
			}
			if got, ok := all.Match(name, dir); got != ignored || ok != decided {
				t.Fatalf("seed %d, %q: %v %v, one by one %v %v", seed, p, got, ok, ignored, decided)
			}
			if decided {
				decisions++
			}
		}
	}
	if decisions < 500 {
		t.Errorf("only %d paths were decided about", decisions)
	}
}
