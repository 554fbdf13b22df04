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
	supports["RequestHeader"] = map[string]string{"encode": "0-2"}
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
	if a.Message == "RequestHeader" {
		return encodeHeader(a)
	}
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
		return nil, unsupported("kmsg reads no headers and writes only those of requests, alone or in frames")
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

// header is what requests begin with.
type header struct {
	RequestApiKey     int16
	RequestApiVersion int16
	CorrelationID     int32
	ClientID          *string
	UnknownTags       kmsg.Tags
}

// format writes size, header and body of a request with the library's RequestFormatter.
func (h header) format(r kmsg.Request) []byte {
	var options []kmsg.RequestFormatterOpt
	if h.ClientID != nil {
		options = append(options, kmsg.FormatterClientID(*h.ClientID))
	}
	return kmsg.NewRequestFormatter(options...).AppendRequest(nil, r, h.CorrelationID)
}

// bodiless is a request of any key and version without a body, whose frame is a size and a header.
type bodiless struct {
	header
	flexible bool
}

func (b bodiless) Key() int16                 { return b.RequestApiKey }
func (b bodiless) MaxVersion() int16          { return b.RequestApiVersion }
func (b bodiless) SetVersion(int16)           {}
func (b bodiless) GetVersion() int16          { return b.RequestApiVersion }
func (b bodiless) IsFlexible() bool           { return b.flexible }
func (b bodiless) ReadFrom([]byte) error      { return errors.New("it has no body") }
func (b bodiless) AppendTo(dst []byte) []byte { return dst }
func (b bodiless) ResponseKind() kmsg.Response {
	return nil
}

// encodeHeader writes the header of a request that has nothing else.
func encodeHeader(a asked) (map[string]any, error) {
	if a.Op != "encode" || a.Part != "body" && a.Part != "" {
		return nil, unsupported("kmsg reads no headers")
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Value))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("adapter: %w", err)
	}
	var head header
	if err := fromJSON(reflect.ValueOf(&head).Elem(), value); err != nil {
		return nil, fmt.Errorf("adapter: %w", err)
	}
	plain := head.RequestApiKey == 7 && head.RequestApiVersion == 0
	if head.UnknownTags.Len() > 0 || plain != (a.Version == 0) {
		return nil, unsupported("RequestFormatter writes no tags, and header 0 for ControlledShutdown version 0 alone")
	}
	return map[string]any{"bytes": hex.EncodeToString(head.format(bodiless{head, a.Version == 2})[4:])}, nil
}

// encodeFrame writes size, header and body with the library's RequestFormatter, which knows nothing but a client id and
// a correlation id.
func encodeFrame(m kmsg.Request, value any) (map[string]any, error) {
	parts, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("adapter: a frame is an object")
	}
	var head header
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
	return map[string]any{"bytes": hex.EncodeToString(head.format(m))}, nil
}
