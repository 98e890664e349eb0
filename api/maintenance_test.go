package api_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// What a body says of maintenance is what the service is asked for, with what a change of the clock makes of a time.
func TestMaintenanceIsRead(t *testing.T) {
	w := newWorld(t, api.Options{})
	const body = `{"name":"cooling","site":"cm5","nodes":["n[1-2]","n7"],"start":"2027-03-27T00:00:00Z","repeat":"every day 02:30","time_zone":"Europe/Berlin","times":3,"except":["2027-03-27"],"duration":"1h","reason":"pumps"}`
	a := into[form.MaintenanceAnswer](t, w.do("root", "POST", "/v1/maintenance", body), 201)
	m := a.Maintenance
	if strings.Join(m.Nodes, " ") != "n1 n2 n7" || len(m.Times) != 2 || m.Repeat != "every day 02:30" || m.TimeZone != "Europe/Berlin" || m.Reason != "pumps" || m.By != "root" || len(a.InTheWay) != 1 {
		t.Errorf("%+v", a)
	}
	if first := m.Times[0]; first.Start.String() != "2027-03-28T01:30:00Z" || first.End-first.Start != 3600 || !strings.Contains(first.Note, "put forward") || m.Times[1].Note != "" {
		t.Errorf("%+v", m.Times)
	}
	if list := into[form.MaintenanceList](t, w.do("alice", "GET", "/v1/maintenance", ""), 200).Maintenance; len(list) != 1 || len(list[0].Times) != 2 {
		t.Errorf("%+v", list)
	}
	if a := w.do("root", "DELETE", "/v1/maintenance/cooling?start=2027-03-28T01:30:00Z", ""); a.Code != 204 {
		t.Errorf("%d %s", a.Code, a.text)
	}
}

// What is wrong is told with the field and what would be right.
func TestMaintenanceThatCannotBe(t *testing.T) {
	w := newWorld(t, api.Options{})
	const good = `"name":"x","site":"cm5"`
	for body, words := range map[string]string{
		`{"site":"cm5","duration":60}`:                                           "name: missing",
		`{"name":"x","duration":60}`:                                             "site: missing",
		`{` + good + `}`:                                                         "duration: missing; want how long it lasts",
		`{` + good + `,"duration":60,"end":"2027-01-01T00:00:00Z"}`:              "end: given beside duration",
		`{` + good + `,"end":"2027-01-01T00:00:00Z","repeat":"every day 09:00"}`: "end: given beside repeat",
		`{` + good + `,"duration":60,"repeat":"every blue moon"}`:                "repeat: ",
		`{` + good + `,"duration":60,"repeat":"every day","time_zone":"Mars"}`:   "time_zone: ",
		`{` + good + `,"duration":60,"nodes":[]}`:                                "nodes: an empty list",
		`{` + good + `,"duration":60,"nodes":["n[1-"]}`:                          "nodes: ",
		`{` + good + `,"duration":0}`:                                            "duration: ",
		`{` + good + `,"duration":60,"dry_run":"yes"}`:                           "dry_run: ",
		`{` + good + `,"duration":60,"colour":"red"}`:                            "colour",
	} {
		if a := w.do("root", "POST", "/v1/maintenance", body); a.Code != 400 && a.Code != 422 || !strings.Contains(a.text, words) {
			t.Errorf("%s: %d %s; want %q", body, a.Code, a.text, words)
		}
	}
	for _, path := range []string{"/v1/maintenance/x?start=tomorrow", "/v1/maintenance/x?start=1970-01-01T00:00:00Z", "/v1/maintenance/x?when=now"} {
		if a := w.do("root", "DELETE", path, ""); a.Code != 400 && a.Code != 422 {
			t.Errorf("%s: %d %s", path, a.Code, a.text)
		}
	}
	if list := into[form.MaintenanceList](t, w.do("root", "GET", "/v1/maintenance", ""), 200).Maintenance; len(list) > 0 {
		t.Errorf("there is %+v", list)
	}
}
