package nearest_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/nearest"
)

func TestOf(t *testing.T) {
	names := []string{"pes", "speed", "binding", "MaxWaitingTime"}
	for word, want := range map[string]string{
		"peds": "pes", "PES": "pes", "sped": "speed", "spede": "speed", "bindnig": "binding", "maxwaittime": "MaxWaitingTime",
		"": "", "x": "", "memory": "", "qq": "",
	} {
		if got, ok := nearest.Of(word, names); got != want || ok != (want != "") {
			t.Errorf("%q is near to %q, want %q", word, got, want)
		}
	}
	if got := nearest.Hint("sped", names) + nearest.Hint("q", names); got != " (did you mean speed?)" {
		t.Errorf("hint %q", got)
	}
}

func TestNothingIsCloseToLongWords(t *testing.T) {
	name := strings.Repeat("n", 65)
	if got, found := nearest.Of(name[:63]+"m", []string{name}); !found || got != name {
		t.Errorf("64 bytes: %q, want the name", got)
	}
	if got, found := nearest.Of(name, []string{name}); found {
		t.Errorf("65 bytes: %q, want none", got)
	}
}

func TestUnknownNamesWhatWasMeantAndAllThereIs(t *testing.T) {
	names := []string{"first-fit", "pe-worst", "pe-best"}
	for word, want := range map[string]string{
		"pe-wrost": `unknown policy "pe-wrost" (did you mean pe-worst?); want first-fit, pe-worst or pe-best`,
		"First":    `unknown policy "First" (did you mean first-fit?); want first-fit, pe-worst or pe-best`,
		"pe-":      `unknown policy "pe-"; want first-fit, pe-worst or pe-best`,
		"":         `unknown policy ""; want first-fit, pe-worst or pe-best`,
	} {
		if got := nearest.Unknown("policy", word, names); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if got := nearest.OneOf([]string{"a"}); got != "a" {
		t.Errorf("%q, want the only one", got)
	}
}
