#!/bin/sh
# Sets up the environment of `make test-engines`: the real SGLang on a machine without a GPU.
#
#     tools/engines.sh PYTHON FOLDER
#
# SGLang is installed without its dependencies, which need CUDA builds. requirements.txt in the folder of the
# tests pins what SGLang imports on the CPU. engine_stand_ins.py, also there, replaces three packages that have no
# CPU build; it is copied into site-packages and imported when Python starts. FOLDER/older has an older SGLang.
set -eu
python=$1 folder=$2 tests=tests/integrations/sglang
newest=0.5.23 oldest=0.5.20

test -x "$folder/bin/python" || "$python" -m venv "$folder"
pip="$folder/bin/python -m pip --quiet"
$pip install --requirement "$tests/requirements.txt"
$pip install --no-deps "sglang==$newest" xgrammar==0.2.7
rm -rf "$folder/older"
$pip install --no-deps --target "$folder/older" "sglang==$oldest"

packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$tests/engine_stand_ins.py" "$packages/"
echo "import engine_stand_ins" > "$packages/engine_stand_ins.pth"
$pip install --no-deps --editable .
touch "$folder/.installed"
