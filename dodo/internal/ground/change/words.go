package change

import (
	"fmt"
	"strings"
)

// counted adds "n things" to a list of such; none adds nothing. words are the forms for one
// and for more.
func counted(text string, words [2]string, n int) string {
	if n == 0 {
		return text
	}
	if text != "" {
		text += ", "
	}
	if n == 1 {
		return text + fmt.Sprintf(words[0], n)
	}
	return text + fmt.Sprintf(words[1], n)
}

// hasWord reports whether a list of words, separated by blanks, has one.
func hasWord(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }
