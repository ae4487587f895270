# Thaw with all its packages, as an image: docs/howto/snakemake.md says how to use it.
#     docker build -t thaw .
# For a GPU: docker build -t thaw --build-arg INDEX=https://pypi.org/simple . takes torch with CUDA.

FROM python:3.11-slim

ARG INDEX=https://download.pytorch.org/whl/cpu
COPY requirements.txt /opt/thaw/
RUN pip install --no-cache-dir --extra-index-url "$INDEX" -r /opt/thaw/requirements.txt

COPY . /opt/thaw
RUN pip install --no-cache-dir --no-deps --no-build-isolation /opt/thaw

# A user without a home directory (docker run --user) needs a place for caches.
ENV HOME=/tmp HF_HOME=/var/tmp/huggingface MPLCONFIGDIR=/var/tmp/matplotlib
WORKDIR /work
ENTRYPOINT ["thaw"]
CMD ["--help"]
