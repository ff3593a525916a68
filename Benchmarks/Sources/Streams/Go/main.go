// An echo server on Go's net: `GoEcho PORT [CHAIN KEY]`; with a certificate it speaks TLS.
package main

import (
	"crypto/tls"
	"log"
	"net"
	"os"
	"runtime"
)

func echo(connection net.Conn) {
	defer connection.Close()
	room := make([]byte, 64*1024)
	for {
		count, err := connection.Read(room)
		if err != nil {
			return
		}
		if _, err = connection.Write(room[:count]); err != nil {
			return
		}
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err == nil && len(os.Args) == 4 {
		var pair tls.Certificate
		pair, err = tls.LoadX509KeyPair(os.Args[2], os.Args[3])
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(connection)
	}
}
