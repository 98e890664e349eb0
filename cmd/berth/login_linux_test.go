package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what a person types and sees, and what a
// program has as its terminal.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	return person, program
}

// shows reports whether the terminal shows what is typed.
func shows(t *testing.T, tty *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// atTerminal runs berth login at a terminal, types once that does not show it any
// more, and returns what was seen and the exit code.
func atTerminal(t *testing.T, url, typed string) (seen string, code int) {
	t.Helper()
	person, program := terminal(t)
	berth, err := exec.LookPath("berth")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(berth, "login", url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), tokenVar+"=", "no_proxy=127.0.0.1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(person) // ends with an error once the terminal is closed
		text <- string(all)
	}()
	for hidden := time.Now().Add(longest); shows(t, program); time.Sleep(time.Millisecond) {
		if time.Now().After(hidden) {
			_ = cmd.Process.Kill()
			t.Fatal("the terminal shows what is typed")
		}
	}
	if _, err := io.WriteString(person, typed); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says it
	if !shows(t, program) {
		t.Error("the terminal does not show any more what is typed")
	}
	_ = program.Close()
	return <-text, cmd.ProcessState.ExitCode()
}

func TestLoginDoesNotShowTheToken(t *testing.T) {
	url, secret := docServer(t)
	seen, code := atTerminal(t, url, secret+"\n")
	if code != 0 || strings.Contains(seen, secret) || !strings.Contains(seen, "token (not shown): ") || !strings.Contains(seen, "as alice, user") {
		t.Errorf("exit %d, seen: %q", code, seen)
	}
}

func TestInterruptedLoginLeavesTheTerminalAsItWas(t *testing.T) {
	url, _ := docServer(t)
	if seen, code := atTerminal(t, url, "half\x03"); code != exitInterrupted || strings.Contains(seen, "half") {
		t.Errorf("exit %d, seen: %q", code, seen)
	}
}
