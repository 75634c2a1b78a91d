// Command browser is the owner at a browser and a terminal, for tests of real clients: it opens
// the address it is given, compares the page's phrase with the one that `dodo auth pending`
// shows, approves on the command line, and lets the browser go back to the client.
//
// The variable BROWSER_DODO is the program dodo, and BROWSER_LOG the file that says how it went.
package main

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

func main() {
	err := visit(os.Args[len(os.Args)-1])
	line := "ok\n"
	if err != nil {
		line = err.Error() + "\n"
	}
	if f, e := os.OpenFile(os.Getenv("BROWSER_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); e == nil {
		_, _ = f.WriteString(line)
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	formPattern   = regexp.MustCompile(`name="form" value="([^"]+)"`)
	phrasePattern = regexp.MustCompile(`class="phrase">([^<]+)<`)
)

func visit(address string) error {
	jar, _ := cookiejar.New(nil) // fails never
	c := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	at, page, err := get(c, address)
	if err != nil {
		return err
	}
	_, id, ok := strings.Cut(at.Path, "/interaction/")
	if !ok {
		return fmt.Errorf("no page of consent: %s\n%s", at, page)
	}
	phrase := phrasePattern.FindStringSubmatch(page)
	if phrase == nil {
		return fmt.Errorf("no phrase on the page:\n%s", page)
	}
	if err := approve(id, html.UnescapeString(phrase[1])); err != nil {
		return err
	}
	if _, page, err = get(c, at.String()); err != nil {
		return err
	}
	form := formPattern.FindStringSubmatch(page)
	if form == nil {
		return fmt.Errorf("nothing to send:\n%s", page)
	}
	r, err := c.PostForm(at.String()+"/complete", url.Values{"form": {html.UnescapeString(form[1])}})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode >= 400 {
		return fmt.Errorf("the client's page: %d %s", r.StatusCode, body)
	}
	return nil
}

func get(c *http.Client, address string) (*url.URL, string, error) {
	r, err := c.Get(address)
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", address, r.StatusCode, body)
	}
	return r.Request.URL, string(body), err
}

// approve says yes to the login whose page it is, when the phrases are the same.
func approve(id, phrase string) error {
	out, err := exec.Command(os.Getenv("BROWSER_DODO"), "auth", "pending", "--json").Output()
	if err != nil {
		return fmt.Errorf("auth pending: %w", err)
	}
	var waiting struct {
		Pending []struct{ ID, Phrase string }
	}
	if err := json.Unmarshal(out, &waiting); err != nil {
		return err
	}
	for _, p := range waiting.Pending {
		if p.ID != id {
			continue
		}
		if p.Phrase != phrase {
			return fmt.Errorf("the page says %q, the list %q", phrase, p.Phrase)
		}
		if out, err := exec.Command(os.Getenv("BROWSER_DODO"), "auth", "approve", id).CombinedOutput(); err != nil {
			return fmt.Errorf("auth approve: %w: %s", err, out)
		}
		return nil
	}
	return fmt.Errorf("%s does not wait: %s", id, out)
}
