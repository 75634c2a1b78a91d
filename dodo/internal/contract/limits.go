package contract

import (
	"reflect"
	"strings"
	"sync"
)

// Limits are the owner's bounds. No caller can change them. Bytes, counts and
// milliseconds; the defaults and the bounds stand in the tags.
type Limits struct {
	RequestBodyBytes        int `json:"requestBodyBytes" default:"16777216" min:"65536" max:"33554432"`
	CommandBytes            int `json:"commandBytes" default:"1048576" min:"8192" max:"8388608"`
	ToolContentBytes        int `json:"toolContentBytes" default:"65536" min:"8192" max:"1048576"`
	ReadFileBytes           int `json:"readFileBytes" default:"8388608" min:"16384" max:"16777216"`
	ReadBatchMax            int `json:"readBatchMax" default:"10" min:"1" max:"50"`
	TreeDepthDefault        int `json:"treeDepthDefault" default:"2" min:"1" max:"10"`
	TreeEntriesMax          int `json:"treeEntriesMax" default:"200" min:"10" max:"5000"`
	SearchResultsMax        int `json:"searchResultsMax" default:"100" min:"10" max:"1000"`
	PreviewFilesMax         int `json:"previewFilesMax" default:"50" min:"1" max:"500"`
	PreviewAggregateBytes   int `json:"previewAggregateBytes" default:"8388608" min:"65536" max:"67108864"`
	JobsConcurrentMax       int `json:"jobsConcurrentMax" default:"4" min:"1" max:"32"`
	JobWallTimeoutDefaultMs int `json:"jobWallTimeoutDefaultMs" default:"600000" min:"1000" max:"86400000"`
	JobWallTimeoutMaxMs     int `json:"jobWallTimeoutMaxMs" default:"1800000" min:"1000" max:"86400000"`
	JobLogBytesPerJob       int `json:"jobLogBytesPerJob" default:"20971520" min:"65536" max:"1073741824"`
	JobLogBytesTotal        int `json:"jobLogBytesTotal" default:"209715200" min:"1048576" max:"17179869184"`
	PlanExpiryMs            int `json:"planExpiryMs" default:"900000" min:"60000" max:"86400000"`
	ApprovalExpiryMs        int `json:"approvalExpiryMs" default:"300000" min:"30000" max:"86400000"`
	IdempotencyRetentionMs  int `json:"idempotencyRetentionMs" default:"86400000" min:"3600000" max:"2592000000"`
	SemanticFilesMax        int `json:"semanticFilesMax" default:"2000" min:"50" max:"20000"`
	SemanticRequestTimeout  int `json:"semanticRequestTimeoutMs" default:"15000" min:"1000" max:"300000"`
	SearchTimeoutMs         int `json:"searchTimeoutMs" default:"10000" min:"500" max:"300000"`
	AuditRetentionDays      int `json:"auditRetentionDays" default:"7" min:"1" max:"3650"`
}

// A Profile is a named set of input budgets.
type Profile string

// The profiles (contract 023).
const (
	ProfileStandard Profile = "standard"
	ProfileLarge    Profile = "large"
)

// DefaultLimits are the limits of a fresh installation.
func DefaultLimits() Limits {
	var l Limits
	l.Each(func(f LimitField) { *f.Value = f.Default })
	return l
}

// Apply sets the input budgets of a profile and nothing else. It reports whether there
// is such a profile.
func (l *Limits) Apply(p Profile) bool {
	const mib = 1 << 20
	switch p {
	case ProfileStandard:
		l.CommandBytes, l.ReadFileBytes, l.PreviewAggregateBytes, l.RequestBodyBytes = 1*mib, 8*mib, 8*mib, 16*mib
	case ProfileLarge:
		l.CommandBytes, l.ReadFileBytes, l.PreviewAggregateBytes, l.RequestBodyBytes = 8*mib, 16*mib, 32*mib, 32*mib
	default:
		return false
	}
	return true
}

// LimitField is one limit with its name, bounds and place.
type LimitField struct {
	Name              string
	Default, Min, Max int
	Value             *int
}

// Each calls f with every limit, in order.
func (l *Limits) Each(f func(LimitField)) {
	v := reflect.ValueOf(l).Elem()
	for i, field := range limitFields() {
		field.Value = v.Field(i).Addr().Interface().(*int)
		f(field)
	}
}

// limitFields are the limits without their values, read from the tags once.
var limitFields = sync.OnceValue(func() []LimitField {
	t := reflect.TypeFor[Limits]()
	fields := make([]LimitField, t.NumField())
	for i := range fields {
		tag := t.Field(i).Tag
		fields[i] = LimitField{
			Name:    strings.Split(tag.Get("json"), ",")[0],
			Default: number(tag.Get("default")), Min: number(tag.Get("min")), Max: number(tag.Get("max")),
		}
	}
	return fields
})

func number(s string) int {
	n := 0
	for _, c := range []byte(s) {
		n = n*10 + int(c-'0')
	}
	return n
}

// UsualAnswer is how many characters an answer has at most that nobody asked to be large
// (decisions 1.4).
const UsualAnswer = 10_000

// aroundData is kept free for what stands around an operation's data, in bytes.
const aroundData = 4 << 10

// Room is how many bytes of JSON the data of an answer may have.
func (l Limits) Room() int { return l.ToolContentBytes - aroundData }
