# VERSION=… IMAGE=registry.example/persona-assay docker buildx bake --file docker-bake.hcl --push
# The image for both architectures, with its SBOM and its provenance attached. It takes a builder that can: docker buildx create --use

variable "IMAGE" { default = "persona-assay" }
variable "VERSION" { default = "local" }
variable "REVISION" { default = "unknown" }
# To pin it: python:3.13-slim-trixie@sha256:…
variable "PYTHON_IMAGE" { default = "python:3.13-slim-trixie" }

target "default" {
  context   = "."
  platforms = ["linux/amd64", "linux/arm64"]
  tags      = ["${IMAGE}:${VERSION}"]
  args      = { VERSION = VERSION, REVISION = REVISION, PYTHON_IMAGE = PYTHON_IMAGE }
  attest    = ["type=sbom", "type=provenance,mode=max"]
}
