# An image with everything but a GPU's libraries: `docker build -t orbitgp .`, or podman or buildah.
#
#   docker run --rm orbitgp make run TIER=smoke
#   docker run --rm orbitgp make test
#
# Any image of Debian's with Python 3.11 or 3.12 will do: --build-arg BASE=…
ARG BASE=docker.io/library/python:3.12-slim-bookworm
FROM $BASE

# make and git for both commands; a browser for the tests that open pages
RUN apt-get update \
    && apt-get install -y --no-install-recommends make git chromium chromium-driver \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /orbitgp
# the environment first, so that an edit of the code does not install it anew
COPY Makefile requirements.lock ./
RUN make .venv/.locked
COPY . .
RUN make .venv/.stamp

CMD ["make", "run"]
