package main

import (
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	mathrand "math/rand"
	mathrand2 "math/rand/v2"
)

// Drawn before there was a query.
var (
	frozenNumber = mathrand2.Uint64()
	frozenSecure = secureBytes()
	frozenSeed   = maphash.MakeSeed()
	frozenSource = mathrand2.New(mathrand2.NewPCG(1, 2))
)

var randomness = []attempt{
	{"random: crypto/rand", secureBytes},
	{"random: crypto/rand text", cryptorand.Text},
	{"random: math/rand", func() string { return fmt.Sprint(mathrand.Int63()) }},
	{"random: math/rand/v2", func() string { return fmt.Sprint(mathrand2.Uint64()) }},
	{"random: shuffle", func() string { return fmt.Sprint(mathrand2.Perm(10)) }},
	{"random: hash with a new seed", func() string { return fmt.Sprint(maphash.String(maphash.MakeSeed(), "x")) }},
	{"frozen: math/rand/v2", func() string { return fmt.Sprint(frozenNumber) }},
	{"frozen: crypto/rand", func() string { return frozenSecure }},
	{"frozen: hash", func() string { return fmt.Sprint(maphash.String(frozenSeed, "x")) }},
	{"frozen: a source with a seed", func() string { return fmt.Sprint(mathrand2.New(mathrand2.NewPCG(1, 2)).Uint64()) }},
	{"order: a source that was made at start", func() string { return fmt.Sprint(frozenSource.Uint64()) }},
}

func secureBytes() string {
	bytes := make([]byte, 16)
	if _, err := cryptorand.Read(bytes); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(bytes)
}
