# SPDX-License-Identifier: MIT
"""Kernels as Debian and Ubuntu ship them: packages are looked up, fetched and unpacked, never installed. apt does
all of it with separate lists, cache and settings, so those of the machine are unchanged; fetched packages are
signed, and kept for the next run."""
import os
import re
import subprocess
import tarfile

DISTRIBUTIONS = {  # URL of its packages, the package with its keys and the file that contains them
    "debian": (os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian"),
               "debian-archive-keyring", "debian-archive-keyring.gpg"),
    "ubuntu": (os.environ.get("UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu"),
               "ubuntu-keyring", "ubuntu-archive-keyring.gpg"),
}


class NotAvailable(Exception):
    """The archive cannot be reached, or no longer has such a package."""


def run(arguments, **options):
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False, **options)
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
        raise NotAvailable(f"{arguments[0]}: {' '.join(last)}")
    return result.stdout


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


class Archive:
    """One suite of one distribution."""

    def __init__(self, cache, distribution, suite):
        self.cache = cache
        self.folder = os.path.join(cache, "apt", f"{distribution}-{suite}")
        self.distribution = distribution
        self.mirror, self.keyring, self.keys = DISTRIBUTIONS[distribution]
        self.suite = suite
        self.names = None

    def options(self):
        settings = {
            "Dir::Etc::sourcelist": f"{self.folder}/sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": self.folder, "Dir::State::Lists": f"{self.folder}/lists",
            "Dir::State::status": f"{self.folder}/status", "Dir::Cache": self.folder,
            "APT::Architecture": "amd64", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::CNF::DefaultEnabled": "false", "Acquire::Retries": "2",
        }
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def key_file(self):
        """The keys that sign the suite: the machine's, otherwise those that Debian ships."""
        path = f"/usr/share/keyrings/{self.keys}"
        kept = os.path.join(self.cache, "keyring")
        if os.path.exists(path):
            return path
        if not os.path.exists(kept + path):
            if self.distribution == "debian":
                raise NotAvailable(f"install {self.keyring}")
            package = Archive(self.cache, "debian", "trixie").fetch(self.keyring)
            run(["dpkg-deb", "-x", package, kept])
        return kept + path

    def packages(self):
        """All package names of the suite."""
        if self.names is None:
            for folder in ("lists/partial", "archives/partial"):
                os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
            with open(os.path.join(self.folder, "sources.list"), "w", encoding="ascii") as file:
                file.write(f"deb [signed-by={self.key_file()}] {self.mirror} {self.suite} main\n")
            with open(os.path.join(self.folder, "status"), "w", encoding="ascii"):
                pass
            run(["apt-get", "-q", *self.options(), "update"])
            self.names = run(["apt-cache", *self.options(), "pkgnames"]).split()
        return self.names

    def newest(self, pattern):
        """The package with the newest kernel that matches the pattern."""
        found = sorted((name for name in self.packages() if re.fullmatch(pattern, name)), key=natural)
        if not found:
            raise NotAvailable(f"{self.suite} has no {pattern}")
        # From 7.0 on Debian's image package is empty and depends on the one with the kernel.
        binary = found[-1].replace("linux-image-", "linux-binary-")
        return binary if binary in self.packages() else found[-1]

    def fetch(self, package):
        """The path of the package's file."""
        if package not in self.packages():
            raise NotAvailable(f"{self.suite} has no {package}")
        folder = os.path.join(self.folder, "packages")
        os.makedirs(folder, exist_ok=True)
        run(["apt-get", "-q", *self.options(), "download", package], cwd=folder)
        found = [name for name in os.listdir(folder) if name.startswith(package + "_")]
        return os.path.join(folder, sorted(found, key=natural)[-1])

    def kernel(self, pattern):
        """The path of the newest matching kernel, fetched if missing."""
        package = self.newest(pattern)
        path = os.path.join(self.cache, "boot", package)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            fetched = self.fetch(package)
            unpack_kernel(fetched, path)
            os.unlink(fetched)
        if not os.path.exists(path):
            raise NotAvailable(f"{package} holds no kernel")
        return path


def unpack_kernel(package, path):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                if member.isfile() and os.path.basename(member.name).startswith("vmlinuz"):
                    with open(path + ".part", "wb") as file:
                        file.write(archive.extractfile(member).read())
                    os.rename(path + ".part", path)
                    break
        process.stdout.close()
        process.wait()
