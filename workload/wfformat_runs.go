package workload

import (
	"strconv"

	"github.com/berth-hpc/berth"
)

// runs reads what the tasks ran.
func (w *wfReader) runs() error {
	w.Runs = make([]WorkflowRun, len(w.tasks))
	for i := range w.tasks {
		t, run := &w.tasks[i], &w.Runs[i]
		// Tasks follow one another in the file, so lines are counted on from the
		// last one.
		run.Line = w.lineFrom(t.at.at)
		for _, object := range []node{t.at, t.executed} {
			if !w.given(object) {
				continue
			}
			if err := w.run(object, run); err != nil {
				return err
			}
		}
	}
	return nil
}

// run reads what an object about a task says it ran.
func (w *wfReader) run(object node, run *WorkflowRun) error {
	return w.members(object, func(name string, value node) (err error) {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "command":
			run.Command, err = w.command(value)
		case "inputFiles":
			run.Inputs, err = w.strings(value, name)
		case "outputFiles":
			run.Outputs, err = w.strings(value, name)
		case "files":
			err = w.files(value, run)
		}
		return err
	})
}

// command reads program and arguments.
func (w *wfReader) command(object node) ([]string, error) {
	if err := w.object(object, "command"); err != nil {
		return nil, err
	}
	program, arguments := "", []string(nil)
	err := w.members(object, func(name string, value node) (err error) {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "program":
			program, err = w.text(value, "command.program")
		case "arguments":
			arguments, err = w.strings(value, "command.arguments")
		}
		return err
	})
	if err != nil || program == "" {
		return nil, err
	}
	return append([]string{program}, arguments...), nil
}

// files reads the list of files that tasks have up to 1.4.
func (w *wfReader) files(list node, run *WorkflowRun) error {
	if err := w.array(list, "files"); err != nil {
		return err
	}
	return w.elements(list, func(object node) error {
		if err := w.object(object, "files"); err != nil {
			return err
		}
		file, link := "", ""
		size := node{}
		err := w.members(object, func(name string, value node) (err error) {
			if !w.given(value) {
				return nil
			}
			switch name {
			case "name":
				file, err = w.string(value, "files.name")
			case "link":
				link, err = w.string(value, "files.link")
			case "sizeInBytes", "size":
				size = value
			}
			return err
		})
		if err == nil {
			err = w.sized(file, size)
		}
		switch {
		case err != nil || file == "":
		case link == "output":
			run.Outputs = append(run.Outputs, file)
		case link == "input":
			run.Inputs = append(run.Inputs, file)
		}
		return err
	})
}

// strings reads a list of texts.
func (w *wfReader) strings(list node, field string) (texts []string, err error) {
	if err := w.array(list, field); err != nil {
		return nil, err
	}
	err = w.elements(list, func(value node) error {
		text, err := w.text(value, field)
		texts = append(texts, text)
		return err
	})
	return texts, err
}

// text is string for a text that may break lines, as scripts do.
func (w *wfReader) text(n node, field string) (string, error) {
	if w.document.text[n.at] != '"' {
		return w.string(n, field)
	}
	return unquote(w.document.text[n.at:n.end]), nil
}

// sizesOf reads the sizes of files that a specification lists.
func (w *wfReader) sizesOf(specification node) error {
	if !w.opt.Runs {
		return nil
	}
	return w.members(specification, func(name string, value node) error {
		if name != "files" || !w.given(value) {
			return nil
		}
		if err := w.array(value, "specification.files"); err != nil {
			return err
		}
		return w.elements(value, func(object node) error {
			if err := w.object(object, "specification.files"); err != nil {
				return err
			}
			id, size := "", node{}
			err := w.members(object, func(name string, value node) (err error) {
				switch {
				case !w.given(value):
				case name == "id":
					id, err = w.string(value, "files.id")
				case name == "sizeInBytes":
					size = value
				}
				return err
			})
			if err != nil {
				return err
			}
			return w.sized(id, size)
		})
	})
}

// sized notes the size of a file, if it is told. Of a file that is told twice the larger one counts.
func (w *wfReader) sized(file string, size node) error {
	if file == "" || !w.given(size) {
		return nil
	}
	bytes, err := strconv.ParseFloat(w.shown(size), 64)
	if err != nil || !(bytes >= 0 && bytes <= maxFileBytes) {
		return w.bad(size, "files.sizeInBytes", "file "+quoted(file)+" has "+w.shown(size)+"; want a number of bytes from 0 to 10^14")
	}
	if w.Sizes == nil {
		w.Sizes = map[string]int64{}
	}
	w.Sizes[file] = max(w.Sizes[file], int64(bytes))
	return nil
}

// maxFileBytes bounds the size of a file: as many bytes as a task may read of another one.
const maxFileBytes = berth.MaxReads
