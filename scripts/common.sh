# Sourced by the other scripts in this folder.

# Prints a Python that can import the given modules, or nothing. The distribution's interpreter has
# the packages that install_dependencies.sh installs; a newer one earlier in PATH may not.
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

# Formats seconds as "1 min 05 s".
duration() {
  if [ "$1" -lt 60 ]; then echo "$1 s"; else printf '%d min %02d s\n' $(($1 / 60)) $(($1 % 60)); fi
}

job_count() {
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
}
