package edit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/internal/fault"
)

// apply applies a patch of one section.
func apply(patch string, before []byte) (after []byte, notes []string, err error) {
	files, err := edit.ParsePatch([]byte(patch))
	if err != nil {
		return nil, nil, err
	}
	if len(files) != 1 {
		return nil, nil, errors.New("not one section")
	}
	return files[0].Apply(before, edit.Options{})
}

const names = "--- a/f\n+++ b/f\n"

func TestPatch(t *testing.T) {
	for name, c := range map[string]struct {
		file, patch, want string
		notes             []string // a piece of each
	}{
		"plain":                               {"a\nb\nc\n", names + "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", nil},
		"git header":                          {"a\n", "diff --git a/f b/f\nindex 78981922..61780798 100644\n" + names + "@@ -1 +1 @@\n-a\n+b\n", "b\n", nil},
		"mailed":                              {"a\n", "From 0123 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n f | 2 +-\n\n" + names + "@@ -1 +1 @@\n-a\n+b\n-- \n2.43.0\n\n", "b\n", nil},
		"in a fence":                          {"a\n", "Here it is:\n```diff\n" + names + "@@ -1 +1 @@\n-a\n+b\n```\nDone.\n", "b\n", nil},
		"a mark before the patch":             {"a\n", "\ufeff" + names + "@@ -1 +1 @@\n-a\n+b\n", "b\n", nil},
		"two hunks":                           {"a\nb\nc\nd\ne\nf\ng\nh\n", names + "@@ -1,2 +1,3 @@\n a\n+x\n b\n@@ -7,2 +8,1 @@\n g\n-h\n", "a\nx\nb\nc\nd\ne\nf\ng\n", nil},
		"wrong order":                         {"a\nb\nc\nd\n", names + "@@ -4 +4 @@\n-d\n+y\n@@ -1 +1 @@\n-a\n+x\n", "x\nb\nc\ny\n", nil},
		"moved down":                          {"0\n0\na\nb\n", names + "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "0\n0\na\nx\n", []string{"hunk 1 was applied at line 3, moved by +2 lines"}},
		"moved up":                            {"a\nb\n", names + "@@ -5,2 +5,2 @@\n a\n-b\n+x\n", "a\nx\n", []string{"moved by -4 lines"}},
		"no line said":                        {"a\nb\n", names + "@@\n a\n-b\n+x\n", "a\nx\n", []string{"says no line", "counts"}},
		"words only":                          {"a\nb\n", names + "@@ func f() @@\n a\n-b\n+x\n", "a\nx\n", []string{"says no line", "counts"}},
		"the said line counts, not the other": {"a\nb\na\nb\n", names + "@@ -3,2 +3,2 @@\n a\n-b\n+x\n", "a\nb\na\nx\n", nil},

		"counts too small":                    {"a\nb\nc\n", names + "@@ -1 +1 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", []string{"counts"}},
		"counts too large":                    {"a\nb\nc\n", names + "@@ -1,9 +1,9 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", []string{"counts"}},
		"counts too large, fenced":            {"a\nb\nc\n", names + "@@ -1,9 +1,9 @@\n a\n-b\n+x\n c\n```\n", "a\nx\nc\n", []string{"counts"}},
		"counts wrong, then blank lines":      {"a\nb\n", names + "@@ -1,9 +1,9 @@\n a\n-b\n+x\n\n\n", "a\nx\n", []string{"counts"}},
		"a blank context line lost its blank": {"a\n\nb\n", names + "@@ -1,3 +1,3 @@\n a\n\n-b\n+x\n", "a\n\nx\n", nil},
		"the same with wrong counts":          {"a\n\nb\n", names + "@@ -1,2 +1,2 @@\n a\n\n-b\n+x\n", "a\n\nx\n", []string{"counts"}},
		"lines that look like names":          {"-- x\n", names + "@@ -1 +1 @@\n--- x\n+++ y\n", "++ y\n", nil},

		"CRLF file, LF patch":           {"a\r\nb\r\nc\r\n", names + "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n", "a\r\nx\r\ny\r\nc\r\n", nil},
		"CRLF file, CRLF patch":         {"a\r\nb\r\n", strings.ReplaceAll(names+"@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "\n", "\r\n"), "a\r\nx\r\n", nil},
		"LF file, CRLF patch":           {"a\nb\n", strings.ReplaceAll(names+"@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "\n", "\r\n"), "a\nx\n", nil},
		"CRLF file, git's patch":        {"a\r\nb\r\n", names + "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\r\n", "a\r\nx\r\n", nil},
		"CRLF to LF":                    {"a\r\n", names + "@@ -1 +1 @@\n-a\r\n+a\n", "a\n", nil},
		"LF to CRLF":                    {"a\n", names + "@@ -1 +1 @@\n-a\n+a\r\n", "a\r\n", nil},
		"mixed endings, LF patch":       {"a\r\nb\nc\r\n", names + "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n", "a\r\nx\ny\nc\r\n", nil},
		"CRLF: a line before the first": {"a\r\nb\n", names + "@@ -1 +1,2 @@\n+x\n a\n", "x\r\na\r\nb\n", nil},

		"no break at the end, said":       {"a\nb", names + "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+x\n\\ No newline at end of file\n", "a\nx", nil},
		"a break comes":                   {"a\nb", names + "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", nil},
		"a break goes":                    {"a\nb\n", names + "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", nil},
		"no break, not said: it stays so": {"a\nb", names + "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nx", nil},
		"the same for a line more":        {"a\nb", names + "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc", nil},
		"the same in CRLF":                {"a\r\nb", names + "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb\r\nc", nil},
		"the last line goes":              {"a\nb", names + "@@ -1,2 +1 @@\n a\n-b\n", "a\n", nil},
		"context at the end":              {"a\nb", names + "@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "x\nb", nil},

		"mark stays":         {"\ufeffa\n", names + "@@ -1 +1 @@\n-a\n+b\n", "\ufeffb\n", nil},
		"mark spelled":       {"\ufeffa\n", names + "@@ -1 +1 @@\n-\ufeffa\n+\ufeffb\n", "\ufeffb\n", nil},
		"mark and its like":  {"\ufeff\ufeffa\n", names + "@@ -1 +1 @@\n-\ufeffa\n+b\n", "\ufeffb\n", nil},
		"both spelled":       {"\ufeff\ufeffa\n", names + "@@ -1 +1 @@\n-\ufeff\ufeffa\n+\ufeffb\n", "\ufeffb\n", nil},
		"its like below":     {"\ufeffa\n\ufeffb\n", names + "@@ -1,2 +1,2 @@\n a\n-\ufeffb\n+c\n", "\ufeffa\nc\n", nil},
		"spelled, not moved": {"\ufeffa\nx\n\ufeffa\n", names + "@@ -1 +1 @@\n-\ufeffa\n+b\n", "b\nx\n\ufeffa\n", nil},
		"mark taken away":    {"\ufeffa\n", names + "@@ -1 +1 @@\n-\ufeffa\n+a\n", "a\n", nil},
		"UTF-16":             {"\xff\xfea\x00\r\x00\n\x00", names + "@@ -1 +1,2 @@\n a\n+é\n", "\xff\xfea\x00\r\x00\n\x00\xe9\x00\r\x00\n\x00", nil},
		"an empty file":      {"", names + "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", nil},
		"the file emptied":   {"a\n", names + "@@ -1 +0,0 @@\n-a\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			after, notes, err := apply(c.patch, []byte(c.file))
			if err != nil {
				t.Fatalf("%v %v", err, fault.From(err).Detail)
			}
			if string(after) != c.want {
				t.Errorf("got %q, want %q", after, c.want)
			}
			if len(notes) != len(c.notes) {
				t.Fatalf("notes %q, want %q", notes, c.notes)
			}
			for i, n := range c.notes {
				if !strings.Contains(notes[i], n) {
					t.Errorf("note %q, want %q", notes[i], n)
				}
			}
		})
	}
}

func TestPatchSections(t *testing.T) {
	const hunk = "@@ -1 +1 @@\n-a\n+b\n"
	for name, c := range map[string]struct {
		patch  string
		path   string
		action edit.Action
	}{
		"a/ and b/":        {"--- a/x/f\n+++ b/x/f\n" + hunk, "x/f", edit.Modify},
		"no prefix":        {"--- x/f\n+++ x/f\n" + hunk, "x/f", edit.Modify},
		"a folder named a": {"--- a/f\n+++ a/f\n" + hunk, "a/f", edit.Modify},
		"git's other ones": {"--- i/f\n+++ w/f\n" + hunk, "f", edit.Modify},
		"times":            {"--- a/f\t2026-01-02 03:04:05.000000000 +0100\n+++ b/f\t2026-01-02 03:04:06 +0100\n" + hunk, "f", edit.Modify},
		"times by blanks":  {"--- a/f 2026-01-02 03:04:05\n+++ b/f 2026-01-02 03:04:06\n" + hunk, "f", edit.Modify},
		"quoted":           {"--- \"a/\\303\\244 \\\"\\t\\\\\"\n+++ \"b/\\303\\244 \\\"\\t\\\\\"\n" + hunk, "ä \"\t\\", edit.Modify},
		"blanks in names":  {"--- a/my file\n+++ b/my file\n" + hunk, "my file", edit.Modify},
		"create":           {"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", "f", edit.Create},
		"create by git":    {"diff --git a/f b/f\nnew file mode 100644\nindex 0000000..1\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", "f", edit.Create},
		"create empty":     {"diff --git a/x y b/x y\nnew file mode 100644\nindex 0000000..e69de29\n", "x y", edit.Create},
		"create by time":   {"--- f\t1970-01-01 00:00:00.000000000 +0000\n+++ f\t2026-01-02 03:04:05 +0000\n@@ -0,0 +1 @@\n+a\n", "f", edit.Create},
		"create, far east": {"--- a/f\t1970-01-01 09:00:00.000000000 +0900\n+++ b/f\t2026-01-02 03:04:05 +0900\n@@ -0,0 +1 @@\n+a\n", "f", edit.Create},
		"create, quoted":   {"--- \"a/\\303\\244\"\t1970-01-01 00:00:00.000000000 +0000\n+++ \"b/\\303\\244\"\t2026-01-02 03:04:05 +0000\n@@ -0,0 +1 @@\n+a\n", "ä", edit.Create},
		"delete by time":   {"--- a/f\t2026-01-02 03:04:05 +0000\n+++ b/f\t1970-01-01 00:00:00.000000000 +0000\n@@ -1 +0,0 @@\n-a\n", "f", edit.Delete},
		"delete, far west": {"--- a/f\t2026-01-02 03:04:05 -0500\n+++ b/f\t1969-12-31 19:00:00.000000000 -0500\n@@ -1 +0,0 @@\n-a\n", "f", edit.Delete},
		"delete, quoted":   {"--- \"a/\\303\\244\"\t2026-01-02 03:04:05 +0000\n+++ \"b/\\303\\244\"\t1970-01-01 00:00:00.000000000 +0000\n@@ -1 +0,0 @@\n-a\n", "ä", edit.Delete},
		"emptied at dawn":  {"--- a/f\t2026-01-02 03:04:05 +0100\n+++ b/f\t1970-01-01 00:00:00.000000000 +0100\n@@ -1 +0,0 @@\n-a\n", "f", edit.Modify},
		"delete":           {"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "f", edit.Delete},
		"delete empty":     {"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\ndeleted file mode 100755\nindex e69de29..0000000\n", "ä", edit.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := edit.ParsePatch([]byte(c.patch))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != 1 || files[0].Path != c.path || files[0].Action != c.action {
				t.Errorf("%+v", files)
			}
		})
	}
}

func TestPatchRefused(t *testing.T) {
	const hunk = "@@ -1 +1 @@\n-a\n+b\n"
	for name, c := range map[string]struct {
		file, patch string
		code        fault.Code
		says        string
	}{
		"nothing":             {"", "hello\n", contract.InvalidInput, "no section"},
		"another format":      {"", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\n", contract.InvalidInput, ""},
		"a hunk alone":        {"a\n", hunk, contract.InvalidInput, "line 1 "},
		"rename":              {"a\n", "--- a/f\n+++ b/g\n" + hunk, contract.NotSupported, "rename"},
		"two directories":     {"a\n", "--- A/f\n+++ B/f\n" + hunk, contract.NotSupported, "names of the section differ"},
		"git's rename":        {"a\n", "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n", contract.NotSupported, "rename"},
		"mode":                {"a\n", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", contract.NotSupported, "mode"},
		"a link":              {"", "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", contract.NotSupported, "mode"},
		"binary":              {"a\n", "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", contract.NotSupported, "binary"},
		"binary patch":        {"a\n", "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n", contract.NotSupported, "binary"},
		"merge":               {"a\n", names + "@@@ -1,1 -1,1 +1,1 @@@\n--a\n++b\n", contract.InvalidInput, "header"},
		"bad numbers":         {"a\n", names + "@@ -1,-1 +1 @@\n-a\n+b\n", contract.InvalidInput, "header"},
		"large numbers":       {"a\n", names + "@@ -99999999999999999999 +1 @@\n-a\n+b\n", contract.InvalidInput, "header"},
		"no change":           {"a\n", names + "@@ -1 +1 @@\n a\n", contract.InvalidInput, "changes nothing"},
		"no hunk":             {"a\n", names, contract.InvalidInput, "no hunk"},
		"one file twice":      {"a\n", names + hunk + names + hunk, contract.Conflict, "two sections"},
		"both null":           {"", "--- /dev/null\n+++ /dev/null\n" + hunk, contract.InvalidInput, "/dev/null"},
		"new with old lines":  {"", "--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", contract.InvalidInput, "no old lines"},
		"delete that keeps":   {"a\n", "--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", contract.InvalidInput, "no new lines"},
		"delete of a part":    {"a\nb\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", contract.Conflict, "1 of its 2 lines"},
		"not there":           {"a\nb\n", names + "@@ -1,2 +1,2 @@\n a\n-c\n+x\n", contract.Conflict, "hunk 1"},
		"two other places":    {"0\na\n0\na\n", names + "@@ -1 +1 @@\n-a\n+b\n", contract.Conflict, "2 other places"},
		"a break said wrong":  {"a\n", names + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", contract.Conflict, "hunk 1"},
		"a break in between":  {"a\nb\n", names + "@@ -1 +1 @@\n-a\n+x\n\\ No newline at end of file\n", contract.Conflict, "hunk 1"},
		"a break too early":   {"a\nb\n", names + "@@ -1,2 +1,2 @@\n a\n\\ No newline at end of file\n-b\n+x\n", contract.InvalidInput, "not the last one"},
		"blank for tab":       {"\ta\n", names + "@@ -1 +1 @@\n-    a\n+b\n", contract.Conflict, "hunk 1"},
		"only new lines":      {"a\n", names + "@@ -1,0 +2 @@\n+b\n", contract.Conflict, "no line of the file"},
		"only new, no counts": {"a\n", names + "@@\n+b\n", contract.InvalidInput, "no old line"},
		"hunks overlap":       {"a\nb\nc\n", names + "@@ -1,2 +1,2 @@\n-a\n+x\n b\n@@ -2,2 +2,2 @@\n-b\n+y\n c\n", contract.Conflict, "hunk 1 covers"},
		"create what is":      {"a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", contract.Conflict, "there already"},
		"a patch of no UTF-8": {"a\n", names + "@@ -1 +1 @@\n-a\n+\xff\n", contract.InvalidInput, "UTF-8"},
		"no UTF-8":            {"\xff\n", names + hunk, contract.UnsupportedEncoding, ""},
	} {
		t.Run(name, func(t *testing.T) {
			after, _, err := apply(c.patch, []byte(c.file))
			if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %q, %v (%v)", after, err, fault.From(err))
			}
		})
	}
}

// Many hunks that are all elsewhere, and hostile patches, take no longer than their size says.
func TestPatchIsSoon(t *testing.T) {
	file := large("\n", 4<<20)
	list := strings.SplitAfter(file, "\n")
	var moved strings.Builder
	moved.WriteString(names)
	for i := range 200 {
		fmt.Fprintf(&moved, "@@ -1,2 +1,1 @@\n %s-%s", list[1+100*i], list[2+100*i])
	}
	start := time.Now()
	after, notes, err := apply(moved.String(), []byte(file))
	if err != nil || len(notes) != 200 || strings.Count(string(after), "\n") != len(list)-1-200 {
		t.Errorf("%d notes, %v", len(notes), err)
	}
	t.Logf("200 moved hunks: %v", time.Since(start))
	if _, _, err := apply(moved.String()+"@@ -1,2 +1,1 @@\n "+list[30001]+"-"+list[30002], []byte(file)); !errors.Is(err, contract.ResourceLimit) {
		t.Errorf("201 moved hunks: %v", err)
	}
	for name, p := range map[string]string{
		"many lines":        names + "@@ -1 +1 @@\n" + strings.Repeat("-a\n", 1<<20),
		"one long name":     "--- a/" + strings.Repeat(" 2026-01-01", 1<<20) + "\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
		"one long git name": "diff --git " + strings.Repeat("a ", 1<<22) + "\nnew file mode 100644\n",
		"counts that lie":   names + strings.Repeat("@@ -1,99999 +1,99999 @@\n-a\n+b\n\n", 100000),
		"empty lines":       names + "@@ -1 +1 @@\n-a\n+b\n" + strings.Repeat("\n", 1<<19),
		"many sections":     strings.Repeat("diff --git a/x b/x\nnew file mode 100644\n", 200000),
		"a long block":      names + "@@ -1 +1 @@\n" + strings.Repeat("-a\n", 1<<18) + "-b\n+x\n",
	} {
		start := time.Now()
		_, _, err := apply(p, []byte(strings.Repeat("a\n", 1<<19)))
		t.Logf("%s: %v (%v)", name, time.Since(start), err)
		if (err == nil) != (name == "empty lines") || time.Since(start) > 30*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(start))
		}
	}
}
