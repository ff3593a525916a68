// A server and a client on Go's net/http, with one processor: `GoHTTP serve PORT`, which answers as the other servers
// do, and `GoHTTP ask PORT get|post|stream CONNECTIONS SECONDS`, which prints as the other clients do.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"
)

var piece = bytes.Repeat([]byte("x"), 16384)

const pieces = 64

func answer(response http.ResponseWriter, request *http.Request) {
	if request.Method == "POST" {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			response.Write(body)
		}
		return
	}
	if request.URL.Path != "/stream" {
		io.WriteString(response, "Hello, world!")
		return
	}
	response.Header().Set("Content-Length", strconv.Itoa(pieces*len(piece)))
	for count := 0; count < pieces; count++ {
		response.Write(piece)
	}
}

func send(client *http.Client, address, kind string) int64 {
	var response *http.Response
	var err error
	if kind == "post" {
		response, err = client.Post(address, "application/octet-stream", bytes.NewReader(piece))
	} else {
		response, err = client.Get(address)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	count, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		log.Fatal(err)
	}
	return count
}

func ask(port, kind string, connections int, limit time.Duration) {
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConns: connections, MaxIdleConnsPerHost: connections}}
	address := "http://127.0.0.1:" + port + "/"
	if kind != "get" {
		address += kind
	}
	expected := map[string]int64{"get": 13, "post": 16384, "stream": 1 << 20}[kind]
	start := time.Now()
	lists := make(chan []int64)
	for number := 0; number < connections; number++ {
		go func() {
			var times []int64
			for begin := start; time.Since(start) < limit; {
				if count := send(client, address, kind); count != expected {
					log.Fatal("an answer has ", count, " bytes")
				}
				end := time.Now()
				times = append(times, end.Sub(begin).Microseconds())
				begin = end
			}
			lists <- times
		}()
	}
	var times []int64
	for number := 0; number < connections; number++ {
		times = append(times, <-lists...)
	}
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	count := len(times)
	spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	fmt.Println(float64(spent.Microseconds())/float64(count), times[count/2], times[count*99/100])
}

func main() {
	runtime.GOMAXPROCS(1)
	if os.Args[1] == "ask" {
		connections, _ := strconv.Atoi(os.Args[4])
		seconds, _ := strconv.Atoi(os.Args[5])
		ask(os.Args[2], os.Args[3], connections, time.Duration(seconds)*time.Second)
		return
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], http.HandlerFunc(answer)))
}
