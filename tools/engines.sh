#!/bin/sh
# Sets up the environment of `make test-engines`: the real SGLang on a machine without GPU.
#
#     tools/engines.sh PYTHON FOLDER
#
# SGLang comes without its dependencies, which ask for CUDA builds; what it imports on the CPU is pinned
# in tests/integrations/sglang/requirements.txt, and three packages that have no such build are stood in for by
# tests/integrations/sglang/engine_stand_ins.py. An older SGLang lies beside it, in FOLDER/older.
set -eu
python=$1 folder=$2
newest=0.5.23 oldest=0.5.20

test -x "$folder/bin/python" || "$python" -m venv "$folder"
pip="$folder/bin/python -m pip --quiet"
$pip install --requirement tests/integrations/sglang/requirements.txt
$pip install --no-deps "sglang==$newest" xgrammar==0.2.7
rm -rf "$folder/older"
$pip install --no-deps --target "$folder/older" "sglang==$oldest"

packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp tests/integrations/sglang/engine_stand_ins.py "$packages/"
echo "import engine_stand_ins" > "$packages/engine_stand_ins.pth"
$pip install --no-deps --editable .
touch "$folder/.installed"
