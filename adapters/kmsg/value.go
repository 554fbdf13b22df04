package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// exact is the largest integer that every JSON reader keeps.
const exact = 1 << 53

// toJSON is the suite's form of a kmsg value; nothing the library keeps is left out.
func toJSON(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return toJSON(v.Elem())
	case reflect.Bool:
		return v.Bool()
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := v.Int(); n > exact || n < -exact {
			return strconv.FormatInt(n, 10)
		}
		return v.Int()
	case reflect.Uint16:
		return v.Uint()
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return strings.Replace(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"), "Inf", "Infinity", 1)
		}
		return v.Float()
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			return hexObject([]byte(s))
		}
		return v.String()
	case reflect.Array:
		id := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(id), v)
		return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return hexObject(v.Bytes())
		}
		all := make([]any, v.Len())
		for i := range all {
			all[i] = toJSON(v.Index(i))
		}
		return all
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			called, shown := name(v.Type(), field)
			if !shown {
				continue
			}
			if tags, ok := v.Field(i).Addr().Interface().(*kmsg.Tags); ok {
				if tags.Len() > 0 {
					fields[called] = tagsToJSON(tags)
				}
			} else if v.Field(i).Kind() == reflect.Slice && v.Field(i).IsNil() && nullable[v.Type().Name()+"."+field.Name] {
				fields[called] = nil
			} else {
				fields[called] = toJSON(v.Field(i))
			}
		}
		return fields
	}
	panic("adapter: no JSON form of " + v.Type().String())
}

func tagsToJSON(tags *kmsg.Tags) []any {
	var all []any
	tags.Each(func(tag uint32, val []byte) {
		all = append(all, map[string]any{"tag": tag, "hex": hex.EncodeToString(val)})
	})
	return all
}

// fromJSON puts a value of the suite's form into a kmsg value that holds the defaults.
func fromJSON(v reflect.Value, value any) error {
	if value == nil && v.Kind() != reflect.Pointer {
		return fmt.Errorf("null is no %s", v.Type())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if value == nil {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return fromJSON(v.Elem(), value)
	case reflect.Bool:
		b, ok := value.(bool)
		if !ok {
			return fmt.Errorf("not a boolean: %v", value)
		}
		v.SetBool(b)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch value.(type) {
		case json.Number, string:
		default:
			return fmt.Errorf("not an integer: %v", value)
		}
		n, err := strconv.ParseInt(fmt.Sprint(value), 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(n)
	case reflect.Uint16:
		n, ok := value.(json.Number)
		if !ok {
			return fmt.Errorf("not an integer: %v", value)
		}
		u, err := strconv.ParseUint(n.String(), 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetUint(u)
	case reflect.Float64:
		f, err := strconv.ParseFloat(fmt.Sprint(value), 64)
		if err != nil {
			return err
		}
		v.SetFloat(f)
	case reflect.String:
		if s, ok := value.(string); ok {
			v.SetString(s)
			return nil
		}
		raw, err := bytesFromJSON(value)
		v.SetString(string(raw))
		return err
	case reflect.Array:
		id, err := uuid(value)
		reflect.Copy(v, reflect.ValueOf(id))
		return err
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			raw, err := bytesFromJSON(value)
			v.SetBytes(raw)
			return err
		}
		all, ok := value.([]any)
		if !ok {
			return fmt.Errorf("not an array: %v", value)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		for i, one := range all {
			if d, ok := v.Index(i).Addr().Interface().(interface{ Default() }); ok {
				d.Default()
			}
			if err := fromJSON(v.Index(i), one); err != nil {
				return fmt.Errorf("[%d] %w", i, err)
			}
		}
	case reflect.Struct:
		return structFromJSON(v, value)
	default:
		return fmt.Errorf("no %s from JSON", v.Type())
	}
	return nil
}

func structFromJSON(v reflect.Value, value any) error {
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("not an object: %v", value)
	}
	known := 0
	for i := range v.NumField() {
		field := v.Type().Field(i)
		called, shown := name(v.Type(), field)
		if !shown {
			continue
		}
		one, given := fields[called]
		if given {
			known++
		} else if one, given = missing(v.Type().Name(), field); !given {
			continue
		}
		var err error
		if tags, ok := v.Field(i).Addr().Interface().(*kmsg.Tags); ok {
			err = tagsFromJSON(tags, one)
		} else if one == nil && nullable[v.Type().Name()+"."+field.Name] {
			v.Field(i).SetZero()
		} else {
			err = fromJSON(v.Field(i), one)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", called, err)
		}
	}
	if known == len(fields) {
		return nil
	}
	for i := range v.NumField() {
		called, _ := name(v.Type(), v.Type().Field(i))
		delete(fields, called)
	}
	for unknown := range fields {
		return fmt.Errorf("no field %s", unknown)
	}
	return nil
}

// missing is what the definition says of a field that the JSON lacks, unless the library says the same.
func missing(structure string, field reflect.StructField) (any, bool) {
	place := structure + "." + field.Name
	if value, ok := defaults[place]; ok {
		return value, true
	} else if field.Type == reflect.TypeFor[*string]() {
		return "", true
	}
	return []any{}, nullable[place]
}

func tagsFromJSON(tags *kmsg.Tags, value any) error {
	all, ok := value.([]any)
	if !ok {
		return errors.New("not an array")
	}
	for _, one := range all {
		pair, _ := one.(map[string]any)
		tag, err := strconv.ParseUint(fmt.Sprint(pair["tag"]), 10, 32)
		if err != nil {
			return err
		}
		text, _ := pair["hex"].(string)
		val, err := unhex(text)
		if err != nil {
			return err
		}
		tags.Set(uint32(tag), val)
	}
	return nil
}

// uuid reads the usual text and Kafka's base64url text.
func uuid(value any) (id [16]byte, err error) {
	text, _ := value.(string)
	var raw []byte
	if len(text) == 22 {
		raw, err = base64.RawURLEncoding.DecodeString(text)
	} else if len(text) == 36 {
		raw, err = hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	}
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("not a uuid: %v", value)
	}
	return [16]byte(raw), nil
}

func bytesFromJSON(value any) ([]byte, error) {
	object, _ := value.(map[string]any)
	text, ok := object["hex"].(string)
	if !ok || len(object) != 1 {
		return nil, fmt.Errorf(`neither text nor {"hex": ...}: %v`, value)
	}
	return unhex(text)
}

// unhex reads hex, which may hold spaces.
func unhex(text string) ([]byte, error) {
	return hex.DecodeString(strings.ReplaceAll(text, " ", ""))
}

func hexObject(raw []byte) map[string]any {
	return map[string]any{"hex": hex.EncodeToString(raw)}
}
