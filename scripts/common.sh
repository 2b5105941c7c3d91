# Sourced by the scripts beside it.

# A Python that can import the modules named, or nothing. The distribution's own interpreter has the
# packages that install_dependencies.sh installs; a newer one earlier in PATH may not.
find_python() {
  local candidate import
  import="import $(IFS=,; echo "$*")"
  for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    if "$candidate" -c "$import" >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
}

# Seconds as "1 min 05 s".
duration() {
  if [ "$1" -lt 60 ]; then echo "$1 s"; else printf '%d min %02d s\n' $(($1 / 60)) $(($1 % 60)); fi
}

job_count() {
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
}
