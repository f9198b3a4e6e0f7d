"""Stands for the command: hands on what it was given and ends as the command does.

Started for every command, so it reads next to nothing: of sockets, only what is built in.
"""

import _socket
import os
import sys


def main(server, arguments):
    said = [f"{len(arguments)}", *arguments, os.getcwd()]
    said += [f"{name}={value}" for name, value in os.environ.items()]
    data = "\0".join(said).encode(errors="surrogateescape")
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(server)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
    connection.sendmsg([len(data).to_bytes(8, "big")], rights)
    connection.sendall(data)
    answer = connection.recv(1)
    if not answer:
        sys.stderr.write("the process that stands for the command has died\n")
        return 70
    return answer[0]


sys.exit(main(sys.argv[1], sys.argv[2:]))
