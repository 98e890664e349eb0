package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// checkedAnswer reports where an answer is not what its description says: an array that is null,
// a field that must be there and is not, a field that is not described.
func checkedAnswer(schemas map[string]any, s map[string]any, v any, at string) (wrong []string) {
	if ref, is := s["$ref"].(string); is {
		return checkedAnswer(schemas, schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any), v, at)
	}
	switch kind := s["type"]; kind {
	case "array":
		list, is := v.([]any)
		if !is {
			return []string{fmt.Sprintf("%s is %v; want an array", at, v)}
		}
		for i, item := range list {
			wrong = append(wrong, checkedAnswer(schemas, s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case "object":
		object, is := v.(map[string]any)
		if !is {
			return []string{fmt.Sprintf("%s is %v; want an object", at, v)}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, has := object[name.(string)]; !has {
				wrong = append(wrong, fmt.Sprintf("%s has no %s", at, name))
			}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, field := range object {
			if p, known := properties[name].(map[string]any); known {
				wrong = append(wrong, checkedAnswer(schemas, p, field, at+"."+name)...)
			} else if properties != nil && s["additionalProperties"] == false {
				wrong = append(wrong, fmt.Sprintf("%s.%s is not described", at, name))
			}
		}
	default:
		if v == nil {
			wrong = append(wrong, fmt.Sprintf("%s is null; want %v", at, kind))
		}
	}
	return wrong
}

// nullable returns where a description allows null.
func nullable(v any, at string) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			found = append(found, nullable(field, at+"/"+name)...)
		}
	case []any:
		for i, item := range v {
			if item == "null" {
				found = append(found, at)
			}
			found = append(found, nullable(item, fmt.Sprintf("%s/%d", at, i))...)
		}
	}
	return found
}

// Arrays are never null, neither by the description nor in an answer of any endpoint, with
// something to tell and with nothing.
func TestArraysAreNeverNull(t *testing.T) {
	w := newWorld(t, api.Options{})
	var doc map[string]any
	if err := json.Unmarshal([]byte(w.do("", "GET", "/openapi.json", "").text), &doc); err != nil {
		t.Fatal(err)
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for name, s := range schemas {
		for _, at := range nullable(s, name) {
			t.Errorf("%s may be null", at)
		}
	}
	asked := 0
	for _, full := range []bool{false, true} {
		for _, row := range rights {
			path, _, _ := strings.Cut(row.path, "?")
			operation := operationOf(doc, row.method, path)
			if operation == nil || row.operator >= 300 || path == "/v1/events" {
				continue
			}
			content := jsonOf(operation, row.operator)
			if content == nil {
				continue
			}
			w := newWorld(t, api.Options{})
			replace := []string{"TOKEN", "none", "OFFER", "none", "ID", "none"}
			if full {
				id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"hold":true,`+askFor[1:]), 201).ID
				offer := into[form.Offers](t, w.do("alice", "POST", "/v1/offers", askFor), 200).Offers[0].ID
				replace = []string{"OFFER", offer, "ID", id}
			}
			a := w.do("root", row.method, strings.NewReplacer(replace...).Replace(row.path), row.body)
			if a.Code >= 300 {
				continue // there is nothing of that name
			}
			for line := range strings.Lines(a.text) {
				var answer any
				if err := json.Unmarshal([]byte(line), &answer); err != nil {
					t.Fatalf("%s %s: %v", row.method, row.path, err)
				}
				asked++
				for _, wrong := range checkedAnswer(schemas, content, answer, row.method+" "+path) {
					t.Error(wrong)
				}
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d answers were looked at", asked)
	}
}

// operationOf returns what a description has of a method and a path with values in it.
func operationOf(doc map[string]any, method, path string) map[string]any {
	for template, operations := range doc["paths"].(map[string]any) {
		want, is := strings.Split(template, "/"), strings.Split(path, "/")
		same := len(want) == len(is)
		for i := range want {
			same = same && (want[i] == is[i] || strings.HasPrefix(want[i], "{"))
		}
		if same {
			operation, _ := operations.(map[string]any)[strings.ToLower(method)].(map[string]any)
			return operation
		}
	}
	return nil
}

// jsonOf returns the schema of the answer of an operation, nil if that is no JSON.
func jsonOf(operation map[string]any, status int) map[string]any {
	answer, _ := operation["responses"].(map[string]any)[fmt.Sprint(status)].(map[string]any)
	contents, _ := answer["content"].(map[string]any)
	for kind, content := range contents {
		if strings.Contains(kind, "json") && http.StatusText(status) != "" {
			s, _ := content.(map[string]any)["schema"].(map[string]any)
			return s
		}
	}
	return nil
}
