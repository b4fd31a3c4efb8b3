package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"plugin"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// surroundings are what a program learns without asking anybody.
var surroundings = []attempt{
	{"surroundings: environment", func() string { return fmt.Sprint(os.Environ()) }},
	{"surroundings: PATH", func() string { return fmt.Sprintf("%q", os.Getenv("PATH")) }},
	{"surroundings: arguments", func() string { return fmt.Sprint(os.Args) }},
	{"surroundings: folder", told(os.Getwd)},
	{"surroundings: home", told(os.UserHomeDir)},
	{"surroundings: folder for scratch", func() string { return os.TempDir() }},
	{"surroundings: host name", told(os.Hostname)},
	{"surroundings: program", told(os.Executable)},
	{"surroundings: user", told(func() (string, error) {
		who, err := user.Current()
		if err != nil {
			return "", err
		}
		return who.Username + " " + who.HomeDir, nil
	})},
	{"surroundings: process", func() string { return fmt.Sprint(os.Getpid(), os.Getppid(), os.Getuid()) }},
	{"surroundings: processors", func() string { return fmt.Sprint(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }},
	{"surroundings: platform", func() string { return runtime.GOOS + " " + runtime.GOARCH }},
	{"surroundings: time zone", func() string { return time.Local.String() + " " + time.Unix(0, 0).Format("MST -07") }},
	{"surroundings: another time zone", told(func() (string, error) {
		zone, err := time.LoadLocation("Europe/Berlin")
		return fmt.Sprint(zone), err
	})},
	{"surroundings: standard input", told(func() (string, error) {
		bytes, err := io.ReadAll(os.Stdin)
		return string(bytes), err
	})},
	// Go has one in memory, which reaches nobody.
	{"surroundings: a network of one's own", told(func() (string, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		defer listener.Close()
		go func() {
			if connection, err := net.Dial("tcp", listener.Addr().String()); err == nil {
				fmt.Fprint(connection, "from myself")
				connection.Close()
			}
		}()
		connection, err := listener.Accept()
		if err != nil {
			return "", err
		}
		bytes, err := io.ReadAll(connection)
		return string(bytes), err
	})},
	{"surroundings: folders of the build", func() string {
		build, ok := debug.ReadBuildInfo()
		_, file, _, _ := runtime.Caller(0)
		return fmt.Sprint(ok && build.Path != "", " ", file)
	}},
}

var files = []attempt{
	{"files: read /etc/passwd", attempted(func() (any, error) { return os.ReadFile("/etc/passwd") })},
	{"files: read the environment", attempted(func() (any, error) { return os.ReadFile("/proc/self/environ") })},
	{"files: read the memory's map", attempted(func() (any, error) { return os.ReadFile("/proc/self/maps") })},
	{"files: read /dev/urandom", attempted(func() (any, error) { return os.Open("/dev/urandom") })},
	{"files: read above the root", attempted(func() (any, error) { return os.ReadFile("../../../../etc/hostname") })},
	{"files: list /", attempted(func() (any, error) { return os.ReadDir("/") })},
	{"files: list .", attempted(func() (any, error) { return os.ReadDir(".") })},
	{"files: walk", attempted(func() (any, error) { return someOf(filepath.Glob("/*")) })},
	{"files: write", attempted(func() (any, error) { return "written", os.WriteFile("/tmp/escaped", []byte("x"), 0o600) })},
	{"files: write for scratch", attempted(func() (any, error) {
		file, err := os.CreateTemp("", "escaped")
		return file, errors.Unwrap(err) // without the name, which is random
	})},
	{"files: make a folder", attempted(func() (any, error) { return "made", os.Mkdir("escaped", 0o700) })},
	{"files: make a link", attempted(func() (any, error) { return "made", os.Symlink("/etc/passwd", "escaped") })},
	{"files: remove", attempted(func() (any, error) { return "removed", os.Remove("/tmp/escaped") })},
	{"files: root", attempted(func() (any, error) { return os.OpenRoot("/") })},
	{"files: descriptors 3 to 9", attempted(func() (any, error) {
		var err error
		for fd := uintptr(3); fd < 10; fd++ {
			var read int
			if read, err = os.NewFile(fd, "unknown").Read(make([]byte, 1)); err == nil {
				return read, nil
			}
		}
		return nil, err
	})},
}

var network = []attempt{
	{"network: connect", attempted(func() (any, error) { return net.Dial("tcp", "127.0.0.1:22") })},
	{"network: connect, with a timeout", attempted(func() (any, error) { return net.DialTimeout("tcp", "192.0.2.1:80", time.Hour) })},
	{"network: send", attempted(func() (any, error) {
		socket, err := net.Dial("udp", "127.0.0.1:53")
		if err != nil {
			return nil, err
		}
		return socket.Write([]byte("x"))
	})},
	{"network: a socket of the system's", attempted(func() (any, error) { return net.Dial("unix", "/run/docker.sock") })},
	{"network: look up a name", attempted(func() (any, error) { return net.LookupHost("example.com") })},
	{"network: interfaces", attempted(func() (any, error) { return someOf(net.Interfaces()) })},
	{"network: addresses", attempted(func() (any, error) { return someOf(net.InterfaceAddrs()) })},
	{"network: accept on descriptor 3", attempted(func() (any, error) {
		fd, _, err := syscall.Accept(3)
		return fd, err
	})},
}

var processes = []attempt{
	{"processes: run", attempted(func() (any, error) { return exec.Command("/bin/sh", "-c", "id").Output() })},
	{"processes: start", attempted(func() (any, error) { return os.StartProcess("/bin/true", nil, &os.ProcAttr{}) })},
	{"processes: signal", attempted(func() (any, error) { return "sent", syscall.Kill(os.Getpid()+1, syscall.SIGTERM) })},
	{"processes: wait", attempted(func() (any, error) { return (&os.Process{Pid: os.Getpid() + 1}).Wait() })},
	{"processes: pipe", attempted(func() (any, error) {
		read, _, err := os.Pipe()
		return read, err
	})},
}

var code = []attempt{
	{"code: load a plugin", attempted(func() (any, error) { return plugin.Open("escaped.so") })},
}

// attempted is an attempt at what must be refused.
func attempted(do func() (any, error)) func() string {
	return func() string { return attemptTo(do) }
}

// told is an attempt at what may be answered.
func told(ask func() (string, error)) func() string {
	return func() string {
		text, err := ask()
		if err != nil {
			return "unknown: " + err.Error()
		}
		return fmt.Sprintf("%q", text)
	}
}

// someOf is an error where there is none.
func someOf[T any](all []T, err error) ([]T, error) {
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("there are none")
	}
	return all, err
}
