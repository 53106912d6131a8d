"""The loopback origin of the demonstration: answers everything on a TCP port
and on a Unix socket, and writes each request's path into a log.

usage: origin.py SOCKET LOG; the first line of the output is the port.
"""
import http.server
import socketserver
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[2], "a") as log:
            log.write(self.path.rsplit("/", 1)[-1] + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def address_string(self):
        return "-"  # a Unix socket has no address

    def log_message(self, *args):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


tcp = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
unix = UnixServer(sys.argv[1], Handler)
threading.Thread(target=unix.serve_forever, daemon=True).start()
print(tcp.server_address[1], flush=True)
tcp.serve_forever()
