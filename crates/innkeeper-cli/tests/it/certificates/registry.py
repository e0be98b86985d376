"""Serves a package registry over TLS: `registry.py CERTIFICATE KEY DIRECTORY`.

Prints the port, then serves the directory until stdin closes. The directory has the package
`tls-server` for npm and for pip.
"""

import functools
import http.server
import json
import pathlib
import ssl
import sys
import tarfile
import threading
import zipfile

certificate, key, directory = sys.argv[1:]
root = pathlib.Path(directory)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", 0), functools.partial(Handler, directory=directory)
)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
origin = f"https://127.0.0.1:{server.server_port}"

# The npm package; `package` has its files.
with tarfile.open(root / "tls-server-1.0.0.tgz", "w:gz") as archive:
    archive.add(root / "package", "package")
manifest = json.loads((root / "package/package.json").read_text())
manifest["dist"] = {"tarball": f"{origin}/tls-server-1.0.0.tgz"}
packument = {
    "name": "tls-server",
    "dist-tags": {"latest": "1.0.0"},
    "versions": {"1.0.0": manifest},
}
(root / "tls-server").write_text(json.dumps(packument))

# The Python package.
simple = root / "simple" / "tls-server"
simple.mkdir(parents=True)
wheel = "tls_server-1.0.0-py3-none-any.whl"
info = "tls_server-1.0.0.dist-info"
files = {
    "tls_server.py": (root / "server.py").read_text(),
    f"{info}/METADATA": "Metadata-Version: 2.1\nName: tls-server\nVersion: 1.0.0\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{info}/entry_points.txt": "[console_scripts]\ntls-server = tls_server:main\n",
}
files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
with zipfile.ZipFile(simple / wheel, "w") as archive:
    for name, text in files.items():
        archive.writestr(name, text)
(simple / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')

threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
