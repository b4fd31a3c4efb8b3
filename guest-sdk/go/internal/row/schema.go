package row

import (
	"strings"
	"unicode"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Schema is the plan's columns in DDL, NOT NULL where a field is no pointer.
func (p *Plan) Schema() string { return p.ddl(nil, true) }

// StoredSchema is the schema that values are stored with: all columns nullable, so that fields can be added later.
func (p *Plan) StoredSchema() string { return p.ddl(nil, false) }

// SchemaAt is the schema of a row that the query knows by the columns of given: a single value takes the name that is
// there, a struct keeps its own.
func (p *Plan) SchemaAt(what, given string) (string, *contract.Fault) {
	if p.named {
		return p.ddl(nil, true), nil
	}
	names := ColumnNames(given)
	if len(names) != len(p.columns) {
		return "", mismatch("the %s of the query has %d columns, the processor's type has one: use a struct", what, len(names))
	}
	return p.ddl(names, true), nil
}

func (p *Plan) ddl(names []string, notNull bool) string {
	var b strings.Builder
	for i := range p.columns {
		c := &p.columns[i]
		if i > 0 {
			b.WriteString(", ")
		}
		name := c.name
		if names != nil {
			name = names[i]
		}
		b.WriteString(quoted(name))
		b.WriteByte(' ')
		b.WriteString(c.ddl)
		if notNull && !c.nullable {
			b.WriteString(" NOT NULL")
		}
	}
	return b.String()
}

// quoted is a name as DDL takes it: bare where it is a plain identifier, else in backquotes.
func quoted(name string) string {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
	}
	if name == "" {
		return "``"
	}
	return name
}

// ColumnNames are the names of the columns at the top level of a schema, unquoted.
func ColumnNames(schema string) []string {
	var names []string
	for rest := strings.TrimSpace(schema); rest != ""; rest = strings.TrimSpace(rest) {
		var name string
		name, rest = leadingName(rest)
		names = append(names, name)
		rest = afterColumn(rest)
	}
	return names
}

func leadingName(schema string) (name, rest string) {
	rest, isQuoted := strings.CutPrefix(schema, "`")
	if !isQuoted {
		end := strings.IndexFunc(schema, func(c rune) bool { return unicode.IsSpace(c) || c == ':' || c == ',' })
		if end < 0 {
			end = len(schema)
		}
		return schema[:end], schema[end:]
	}
	for {
		part, after, found := strings.Cut(rest, "`")
		name += part
		// A doubled backquote stands for one.
		if rest, isQuoted = strings.CutPrefix(after, "`"); !found || !isQuoted {
			return name, after
		}
		name += "`"
	}
}

// afterColumn is what follows the comma that ends the column in hand; commas inside of types and quoted names do not.
func afterColumn(schema string) string {
	depth, isQuoted := 0, false
	for i, c := range schema {
		switch {
		case c == '`':
			isQuoted = !isQuoted
		case isQuoted:
		case c == '<' || c == '(':
			depth++
		case c == '>' || c == ')':
			depth--
		case c == ',' && depth == 0:
			return schema[i+1:]
		}
	}
	return ""
}

// snakeCase is the column's name of a field without a tag: LastSeen is last_seen, UserID user_id, HTTPCode http_code.
func snakeCase(field string) string {
	letters := []rune(field)
	var b strings.Builder
	for i, c := range letters {
		if unicode.IsUpper(c) && i > 0 && letters[i-1] != '_' {
			endsAcronym := unicode.IsUpper(letters[i-1]) && i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if !unicode.IsUpper(letters[i-1]) || endsAcronym {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
