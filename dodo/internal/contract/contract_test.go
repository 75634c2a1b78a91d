package contract_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// TestCodesAreTheContracts pins the closed list.
func TestCodesAreTheContracts(t *testing.T) {
	want := strings.Fields(`AUTH_REQUIRED WORKSPACE_ACCESS_REQUIRED FORBIDDEN WORKSPACE_MISMATCH STALE_WORKSPACE PATH_DENIED
		SECRET_PATH_DENIED NOT_FOUND UNSUPPORTED_ENCODING UNSUPPORTED_LANGUAGE FILE_TOO_LARGE FILE_CHANGED AMBIGUOUS_EDIT
		PLAN_EXPIRED PLAN_HASH_MISMATCH APPROVAL_REQUIRED APPROVAL_EXPIRED IDEMPOTENCY_CONFLICT RESOURCE_LIMIT JOB_NOT_FOUND
		JOB_NOT_RUNNING TIMEOUT RECOVERY_REQUIRED PARTIAL_RECOVERY_REQUIRED MIGRATION_REVIEW_REQUIRED INVALID_INPUT
		NOT_SUPPORTED CONFLICT INTERNAL_ERROR`)
	var got []string
	for _, c := range contract.Codes {
		got = append(got, string(c.Code))
		if c.Text == "" || c.HTTP < 400 || c.HTTP > 599 {
			t.Errorf("%s: %d %q", c.Code, c.HTTP, c.Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestStoredScopes shows that what cannot be read, or is not known, grants nothing.
func TestStoredScopes(t *testing.T) {
	for stored, want := range map[string][]string{
		`["dodo:read"]`:              {"dodo:read"},
		`["dodo:exec","dodo:read"]`:  {"dodo:read", "dodo:exec"},
		`["dodo:read","dodo:read"]`:  {"dodo:read"},
		`[]`:                         {},
		``:                           {},
		`null`:                       {},
		`dodo:read dodo:write`:       {},
		`"dodo:read"`:                {},
		`["dodo:read","dodo:admin"]`: {},
		`["DODO:READ"]`:              {},
		`["dodo:read",1]`:            {},
		`{"dodo:read":true}`:         {},
		`["dodo:read"] trailing`:     {},
		`["dodo:read", "dodo:write", "dodo:exec"]`: {"dodo:read", "dodo:write", "dodo:exec"},
	} {
		got := contract.DecodeScopes(stored)
		if !slices.Equal(got.Words(), want) {
			t.Errorf("%s: %v, want %v", stored, got, want)
		}
		if again := contract.DecodeScopes(got.Encode()); !slices.Equal(again, got) {
			t.Errorf("%s: stored as %s, read as %v", stored, got.Encode(), again)
		}
	}
}

// TestUnknownModesAreTheLeast shows that a word nobody knows never gives more.
func TestUnknownModesAreTheLeast(t *testing.T) {
	for _, w := range []string{"", "Trusted", "trusted ", "all", "none"} {
		if m, ok := contract.ParseTrust(w); ok || m != contract.TrustInspect {
			t.Errorf("trust %q: %s, %v", w, m, ok)
		}
		if m, ok := contract.ParseAccessMode(w); ok || m != contract.AccessManaged {
			t.Errorf("access mode %q: %s, %v", w, m, ok)
		}
	}
}

// TestLimits pins the limits, their bounds and the profiles.
func TestLimits(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	want := map[string][3]int{ // default, least, most; a most of 0 is ours
		"requestBodyBytes": {16 * mib, 64 * kib, 32 * mib}, "commandBytes": {mib, 8 * kib, 8 * mib},
		"toolContentBytes": {64 * kib, 8 * kib, mib}, "readFileBytes": {8 * mib, 16 * kib, 16 * mib},
		"readBatchMax": {10, 1, 50}, "treeDepthDefault": {2, 1, 10}, "treeEntriesMax": {200, 10, 5000},
		"searchResultsMax": {100, 10, 1000}, "previewFilesMax": {50, 1, 500},
		"previewAggregateBytes": {8 * mib, 64 * kib, 64 * mib}, "jobsConcurrentMax": {4, 1, 32},
		"jobWallTimeoutDefaultMs": {600000, 1000, 0}, "jobWallTimeoutMaxMs": {1800000, 1000, 0},
		"jobLogBytesPerJob": {20 * mib, 64 * kib, 0}, "jobLogBytesTotal": {200 * mib, mib, 0},
		"planExpiryMs": {900000, 60000, 0}, "approvalExpiryMs": {300000, 30000, 0},
		"idempotencyRetentionMs": {86400000, 3600000, 0}, "semanticFilesMax": {2000, 50, 20000},
		"semanticRequestTimeoutMs": {15000, 1000, 0}, "searchTimeoutMs": {10000, 500, 0}, "auditRetentionDays": {7, 1, 0},
	}
	l := contract.DefaultLimits()
	seen := 0
	l.Each(func(f contract.LimitField) {
		seen++
		w, ok := want[f.Name]
		if !ok || f.Default != w[0] || f.Min != w[1] || w[2] != 0 && f.Max != w[2] || *f.Value != w[0] || f.Max < f.Default {
			t.Errorf("%s: %d, %d to %d; want %v", f.Name, f.Default, f.Min, f.Max, w)
		}
	})
	if seen != len(want) {
		t.Errorf("%d limits, want %d", seen, len(want))
	}
	if !l.Apply(contract.ProfileLarge) || l.CommandBytes != 8*mib || l.ReadFileBytes != 16*mib ||
		l.PreviewAggregateBytes != 32*mib || l.RequestBodyBytes != 32*mib {
		t.Errorf("large: %+v", l)
	}
	if !l.Apply(contract.ProfileStandard) || l != contract.DefaultLimits() {
		t.Errorf("standard: %+v", l)
	}
	if l.Apply("huge") || l != contract.DefaultLimits() {
		t.Error("an unknown profile was applied")
	}
}

// TestIDs shows the form of ids, and that a workspace's depends on secret and root alone.
func TestIDs(t *testing.T) {
	form := regexp.MustCompile(`^cs_[0-9a-hjkmnp-tv-z]{10}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := contract.NewID(contract.PrefixChangeset, 0)
		if !form.MatchString(id) || seen[id] {
			t.Fatal(id)
		}
		seen[id] = true
	}
	if !contract.IsProjectID(contract.NewID(contract.PrefixProject, 0)) || contract.IsProjectID("prj_short") || contract.IsProjectID("prj_ilouilou") {
		t.Error("the form of a project's id")
	}
	one := contract.WorkspaceID([]byte("secret"), "/a")
	if one != contract.WorkspaceID([]byte("secret"), "/a") || !regexp.MustCompile(`^ws_[0-9a-f]{20}$`).MatchString(one) ||
		one == contract.WorkspaceID([]byte("secreu"), "/a") || one == contract.WorkspaceID([]byte("secret"), "/b") {
		t.Error(one)
	}
	if !contract.IsHash(contract.Hash(nil)) || contract.IsHash("sha256:E3") {
		t.Error("the form of a hash")
	}
}

// TestDigestIgnoresOrder shows that a digest depends on what a value says.
func TestDigestIgnoresOrder(t *testing.T) {
	digest := func(v any) string {
		d, err := contract.Digest(v)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := digest(map[string]any{"b": 1, "a": map[string]any{"y": []int{1, 2}, "x": "ü\u202e"}})
	b := digest(json.RawMessage(` {"a": {"x": "\u00fc\u202E", "y": [1, 2]}, "b": 1.0}`))
	if a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a == digest(map[string]any{"b": 2, "a": map[string]any{"y": []int{1, 2}, "x": "ü\u202e"}}) {
		t.Error("another value has the same digest")
	}
}

type out struct {
	N int `json:"n"`
}

// TestEnvelope pins the one form of an answer.
func TestEnvelope(t *testing.T) {
	encode := func(r *contract.Reply) string {
		b, err := op.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	good := contract.Success("ws_1", "boot_1", contract.Result{Data: out{3}, Truncated: true, NextCursor: "c9"})
	if got, want := encode(good), `{"ok":true,"workspaceId":"ws_1","workspaceEpoch":"boot_1","data":{"n":3},"error":null,"warnings":[],"truncated":true,"nextCursor":"c9"}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	f := fault.New(contract.Forbidden, "no").WithHint("ask").With("requiredScope", "dodo:write")
	bad := contract.Failure("", "", f)
	if got, want := encode(bad), `{"ok":false,"workspaceId":null,"workspaceEpoch":null,"data":null,"error":{"code":"FORBIDDEN","message":"no","retryable":false,"recovery":"ask","detail":{"requiredScope":"dodo:write"}},"warnings":[],"truncated":false,"nextCursor":null}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := good.Text(); got != encode(good) {
		t.Errorf("text %s", got)
	}
	good.Most = 100
	if got, want := good.Text(), `{"ok":true,"workspaceId":"ws_1","workspaceEpoch":"boot_1","error":null,"truncated":true,"note":"The whole answer is in structuredContent; it is too long for text."}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if good.Failed() || !bad.Failed() {
		t.Error("what failed")
	}
}

// FuzzEnvelope shows that an envelope of any failure is JSON that says it.
func FuzzEnvelope(f *testing.F) {
	f.Add("CONFLICT", "it is\x00so", "do \xff that", "path", "a\nb")
	f.Fuzz(func(t *testing.T, code, msg, hint, key, value string) {
		e := fault.New(fault.Code(code), "%s", msg).WithHint("%s", hint).With(key, value)
		b, err := op.Encode(contract.Failure("w", "e", e))
		if err != nil {
			t.Fatal(err)
		}
		var back contract.Envelope[any]
		if err := json.Unmarshal(b, &back); err != nil || back.OK || back.Error == nil || back.Data != nil {
			t.Fatalf("%s: %v", b, err)
		}
	})
}

// FuzzDecodeScopes shows that stored scopes are never more than known ones.
func FuzzDecodeScopes(f *testing.F) {
	f.Add(`["dodo:read"]`)
	f.Add(`["dodo:read","x"]`)
	f.Fuzz(func(t *testing.T, stored string) {
		for _, s := range contract.DecodeScopes(stored) {
			if !slices.Contains(contract.AllScopes, s) || !strings.Contains(stored, "dodo") && !strings.Contains(stored, `\u`) {
				t.Fatalf("%q gives %s", stored, s)
			}
		}
	})
}
