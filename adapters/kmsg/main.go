// Command kmsg-adapter speaks the adapter protocol for franz-go's kmsg: one JSON line in, one out.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// asked is a line from the suite.
type asked struct {
	Op       string          `json:"op"`
	Protocol int             `json:"protocol"`
	ID       json.RawMessage `json:"id"`
	Message  string          `json:"message"`
	Version  int             `json:"version"`
	Part     string          `json:"part"`
	Bytes    string          `json:"bytes"`
	Value    json.RawMessage `json:"value"`
}

// unsupported is what the library does not have; any other error is a refusal.
type unsupported string

func (u unsupported) Error() string { return string(u) }

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, end := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var a asked
			if err := json.Unmarshal(line, &a); err != nil {
				quit("not a JSON line: %v", err)
			}
			switch a.Op {
			case "stop":
				return
			case "start":
				if a.Protocol != 1 {
					quit("speaks adapter protocol 1, asked for %d", a.Protocol)
				}
				out.Encode(handshake())
			default:
				out.Encode(answer(a))
			}
		}
		if end == io.EOF {
			return
		} else if end != nil {
			quit("%v", end)
		}
	}
}

func quit(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "kmsg adapter: "+format+"\n", args...)
	os.Exit(2)
}

func handshake() map[string]any {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.HasSuffix(dep.Path, "/kmsg") {
				version = strings.TrimPrefix(dep.Version, "v")
			}
		}
	}
	supports := map[string]any{}
	for name, make := range messages {
		versions := fmt.Sprintf("0-%d", make().MaxVersion())
		supports[name] = map[string]string{"decode": versions, "encode": versions}
	}
	return map[string]any{
		"protocol": 1, "peer": "kmsg", "version": version, "language": "go", "supports": supports, "operations": struct{}{},
	}
}

func answer(a asked) (answer map[string]any) {
	defer func() {
		if panicked := recover(); panicked != nil {
			answer = map[string]any{"panic": fmt.Sprint(panicked)}
		}
		if a.ID != nil {
			answer["id"] = a.ID
		}
	}()
	answer, err := perform(a)
	var lacks unsupported
	if errors.As(err, &lacks) {
		return map[string]any{"unsupported": err.Error()}
	} else if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return answer
}

func perform(a asked) (map[string]any, error) {
	make, ok := messages[a.Message]
	if !ok {
		return nil, unsupported("no message " + a.Message)
	}
	m := make()
	if a.Version < 0 || a.Version > int(m.MaxVersion()) {
		return nil, unsupported(fmt.Sprintf("%s has versions 0-%d", a.Message, m.MaxVersion()))
	}
	m.SetVersion(int16(a.Version))
	request, isRequest := m.(kmsg.Request)
	frame := a.Part == "frame" && a.Op == "encode" && isRequest
	if a.Part != "body" && a.Part != "" && !frame {
		return nil, unsupported("kmsg reads no headers and writes only those of requests, in frames")
	}
	switch a.Op {
	case "decode", "recode":
		src, err := unhex(a.Bytes)
		if err != nil {
			return nil, err
		}
		if err := m.ReadFrom(src); err != nil {
			return nil, err
		}
		answer := map[string]any{"left": left(a, src)}
		if a.Op == "decode" {
			answer["value"] = toJSON(reflect.ValueOf(m).Elem())
		} else {
			answer["bytes"] = hex.EncodeToString(m.AppendTo(nil))
		}
		return answer, nil
	case "encode":
		decoder := json.NewDecoder(bytes.NewReader(a.Value))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("adapter: %w", err)
		}
		if frame {
			return encodeFrame(request, value)
		}
		if err := fromJSON(reflect.ValueOf(m).Elem(), value); err != nil {
			return nil, fmt.Errorf("adapter: %w", err)
		}
		return map[string]any{"bytes": hex.EncodeToString(m.AppendTo(nil))}, nil
	}
	return nil, unsupported("no operation " + a.Op)
}

// left is how many bytes the library did not read. It does not say, and reads on from front to back, so that the shortest
// prefix it still takes is what it read.
func left(a asked, src []byte) int {
	enough := func(n int) bool {
		m := messages[a.Message]()
		m.SetVersion(int16(a.Version))
		return m.ReadFrom(src[:n:n]) == nil
	}
	if len(src) == 0 || !enough(len(src)-1) {
		return 0
	}
	return len(src) - sort.Search(len(src)-1, enough)
}

// encodeFrame writes size, header and body with the library's RequestFormatter, which knows nothing but a client id and
// a correlation id.
func encodeFrame(m kmsg.Request, value any) (map[string]any, error) {
	parts, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("adapter: a frame is an object")
	}
	head := struct {
		RequestApiKey     int16
		RequestApiVersion int16
		CorrelationID     int32
		ClientID          *string
		UnknownTags       kmsg.Tags
	}{}
	for name, part := range parts {
		into := reflect.ValueOf(m).Elem()
		if name == "header" {
			into = reflect.ValueOf(&head).Elem()
		} else if name != "body" {
			return nil, fmt.Errorf("adapter: a frame has header and body, not %s", name)
		}
		if err := fromJSON(into, part); err != nil {
			return nil, fmt.Errorf("adapter: %s %w", name, err)
		}
	}
	if head.RequestApiKey != m.Key() || head.RequestApiVersion != m.GetVersion() || head.UnknownTags.Len() > 0 {
		return nil, unsupported("RequestFormatter writes the message's own key and version, and no tags")
	}
	var options []kmsg.RequestFormatterOpt
	if head.ClientID != nil {
		options = append(options, kmsg.FormatterClientID(*head.ClientID))
	}
	frame := kmsg.NewRequestFormatter(options...).AppendRequest(nil, m, head.CorrelationID)
	return map[string]any{"bytes": hex.EncodeToString(frame)}, nil
}
