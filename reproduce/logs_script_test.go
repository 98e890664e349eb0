package reproduce

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/realdata"
)

// docs/results/logs.sh names every log that is read, knows the content of those that are here,
// and tells another content from it.
func TestTheScriptOfLogsKnowsThem(t *testing.T) {
	script := filepath.Join("..", "docs", "results", "logs.sh")
	list := string(fileAt(t, script))
	for _, log := range append([]archiveLog{cm5, hpc2n}, mixedLogs...) {
		if !strings.Contains(list, " "+log.file+".swf.gz ") {
			t.Errorf("no line about %s", log.file)
		}
	}
	folder := t.TempDir()
	out, err := exec.Command("sh", script, folder).CombinedOutput()
	if err != nil || strings.Count(string(out), "absent ") != 7 {
		t.Errorf("an empty folder: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(folder, cm5.file+".swf.gz"), []byte("another"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err = exec.Command("sh", script, folder).CombinedOutput(); err == nil || !strings.Contains(string(out), "OTHER CONTENT  "+folder) {
		t.Errorf("another content: %v\n%s", err, out)
	}
	if out, err = exec.Command("sh", script).CombinedOutput(); err == nil || !strings.Contains(string(out), "usage: ") {
		t.Errorf("no folder: %v\n%s", err, out)
	}

	data := filepath.Dir(filepath.Dir(realdata.File(t, "swf", cm5.file+".swf.gz")))
	out, err = exec.Command("sh", script, data).CombinedOutput()
	if err != nil || strings.Count(string(out), "as used here ") != 7 {
		t.Errorf("%v\n%s", err, out)
	}
}
