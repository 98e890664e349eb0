package api

import (
	"encoding/json"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/icalendar"
)

// schema describes a value, as JSON Schema has it.
type schema = huma.Schema

func whole(least, most int64) *schema {
	low, high := float64(least), float64(most)
	return &schema{Type: "integer", Format: "int64", Minimum: &low, Maximum: &high}
}

func text(example string) *schema {
	s := &schema{Type: "string"}
	if example != "" {
		s.Examples = []any{example}
	}
	return s
}

func instant() *schema {
	return &schema{Type: "string", Format: "date-time", Examples: []any{"2026-11-21T18:00:00+01:00"}}
}

func duration() *schema {
	zero := 0.0
	return &schema{
		Description: "Seconds, or a text: ISO 8601, 2h30m, or [D-]HH:MM:SS.",
		OneOf:       []*schema{{Type: "integer", Minimum: &zero}, {Type: "string"}},
		Examples:    []any{7200, "PT2H", "2h30m", "1-02:30:00"},
	}
}

func holding() *schema {
	zero := 0.0
	return &schema{
		OneOf:    []*schema{{Type: "boolean"}, {Type: "integer", Minimum: &zero}, {Type: "string"}},
		Examples: []any{true, "10m"},
	}
}

func oneOf(names ...string) *schema {
	s := &schema{Type: "string"}
	for _, name := range names {
		s.Enum = append(s.Enum, name)
	}
	return s
}

func listOf(item *schema) *schema { return &schema{Type: "array", Items: item} }

// object describes a body by its fields. Nothing else is allowed in it.
func object[T any](b body[T]) *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: false}
	for i := range b {
		property := *b[i].form
		property.Description = b[i].about
		if b[i].form.Description != "" {
			property.Description += " " + b[i].form.Description
		}
		s.Properties[b[i].name] = &property
	}
	return s
}

const about = `Advance reservations for parallel machines: ask for processors within a window of time, get a promise or a
reasoned no with offers that can be held.

Times are RFC 3339 with a zone, durations seconds in answers and seconds or texts in questions. Every request but those for
health and this description wants a bearer token. Errors are problems (RFC 9457) with a code, which never changes its meaning, and
every field that is at fault. An Idempotency-Key makes asking twice the same as asking once, for a day. If-Match with the ETag of
a reservation lets nothing be done to another version of it than the one that was seen.`

// describe returns the OpenAPI description of all endpoints.
func describe(version string) []byte {
	if version == "" {
		version = "development"
	}
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	doc := &huma.OpenAPI{
		OpenAPI:    "3.1.0",
		Info:       &huma.Info{Title: "Berth", Version: version, Description: about},
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}},
	}
	problems := &huma.Response{
		Description: "A problem.",
		Content:     map[string]*huma.MediaType{form.ProblemType: {Schema: registry.Schema(reflect.TypeFor[form.Problem](), true, "")}},
	}
	for i := range endpoints {
		doc.AddOperation(endpoints[i].operation(registry, problems))
	}
	for _, s := range registry.Map() {
		neverNull(s)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		panic("api: the description cannot be written: " + err.Error())
	}
	return data
}

// neverNull takes from a description of answers that arrays may be null, which the library says
// of every slice. None is: TestArraysAreNeverNull. Items are named schemas or no arrays.
func neverNull(s *schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	for _, p := range s.Properties {
		neverNull(p)
	}
}

// schemaName names the types of this room as they are, and others with their
// room before them.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if pkg := path.Base(t.PkgPath()); pkg != "form" && pkg != "." {
		return string(pkg[0]-'a'+'A') + pkg[1:] + name
	}
	return name
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// scopeText says which scopes a token with scopes needs.
func (e *endpoint) scopeText() string {
	switch {
	case e.anyScope:
		return ", of any scope."
	case e.scopes().All():
		return ", of all scopes."
	}
	return ", which has the scope " + strings.Join(e.scopes().Names(), " and ") + "."
}

func (e *endpoint) operation(registry huma.Registry, problems *huma.Response) *huma.Operation {
	op := &huma.Operation{
		OperationID: e.id, Method: e.method, Path: e.path, Summary: e.about,
		Responses: map[string]*huma.Response{"default": problems},
	}
	if e.role != "" {
		op.Security = []map[string][]string{{"token": {}}}
		op.Description = "Takes a token of the role " + string(e.role) + " or more" + e.scopeText()
	}
	for _, name := range inPath.FindAllStringSubmatch(e.path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name[1], In: "path", Required: true, Schema: text("")})
	}
	for _, p := range e.params {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.about, Schema: p.form})
	}
	header := func(name, about string) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "header", Description: about, Schema: text("")})
	}
	if e.keyed {
		header("Idempotency-Key", "A name for this action: the same name with the same body is done once.")
	}
	if e.conditional {
		header("If-Match", "The ETag of the version that was seen; if there is another by now nothing is done, and the status is 412.")
	}
	if e.media == icalendar.Type {
		header("If-None-Match", "The ETag of the calendar that is known; if it is still so, the status is 304.")
	}
	if e.stream {
		header("Last-Event-ID", "The event to begin behind.")
	}
	if e.body != nil {
		op.RequestBody = &huma.RequestBody{Required: !e.bare, Content: map[string]*huma.MediaType{"application/json": {Schema: e.body}}}
	}
	if e.sends != "" {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{e.sends: {Schema: &schema{Type: "string", Format: "binary"}}}}
	}
	done := &huma.Response{Description: "Done."}
	if e.answer != nil {
		kind := "application/json"
		if e.stream {
			kind = "text/event-stream"
		}
		t := reflect.TypeOf(e.answer)
		done.Content = map[string]*huma.MediaType{kind: {Schema: registry.Schema(t, true, t.Name())}}
		if e.conditional || e.id == "get" || e.id == "request" || e.id == "hold" {
			done.Headers = map[string]*huma.Param{"ETag": {Description: "The version of the reservation.", Schema: text(`"3"`)}}
		}
	}
	if e.media != "" && e.answer != nil { // the answer on each line
		done.Content = map[string]*huma.MediaType{e.media: {Schema: registry.Schema(reflect.TypeOf(e.answer), true, "")}}
	} else if e.media != "" {
		done.Content = map[string]*huma.MediaType{e.media: {Schema: &schema{Type: "string", Format: "binary"}}}
	}
	op.Responses[strconv.Itoa(e.status)] = done
	return op
}
