# Debian packages of an installed tree: cpack -G DEB (scripts/release.sh deb). Each component of the
# install rules is one package; dpkg-shlibdeps determines its dependencies.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Cortado authors")
set(CPACK_PACKAGE_CONTACT "The Cortado authors <maintainers@cortado.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# caffe_package(<component> <package> <section> <summary> <text>)
function(caffe_package component package section summary text)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${package} RENAME copyright
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  string(TOUPPER ${component} name)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
endfunction()

caffe_package(programs cortado science "Caffe, compiled: training and inference of neural networks"
  "Reads the definitions, weights and databases of Caffe, compiles each net to a plan of kernels and memory, and trains or runs it. This package has the program caffe, the tools that make databases, the library, and the models and examples.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS cortado-formats)
# Both install /usr/bin/caffe.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONFLICTS "caffe-cpu, caffe-cuda")

caffe_package(formats cortado-formats science "Image and video formats for Cortado"
  "Reads images other than JPEG, and videos, by OpenCV. JPEG needs only package cortado.")
set(CPACK_COMPONENT_FORMATS_DEPENDS programs)

caffe_package(development libcortado-dev libdevel "C++ headers of Cortado"
  "For C++ programs that use nets and solvers, and for new layers.")
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS programs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libprotobuf-dev, protobuf-compiler, libgoogle-glog-dev, libgflags-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_CONFLICTS libcaffe-cpu-dev)

caffe_package(runtime libcortado-runtime libs "Runs compiled nets, from C"
  "A small library that runs what `caffe compile` writes, with its header, and without the rest of Cortado.")

if(CAFFE_PYTHON_VERSION)
  caffe_package(python python3-cortado python "Python package caffe, by Cortado"
    "Nets, solvers and layers with the names of pycaffe, for the Python of this distribution.")
  set(CPACK_COMPONENT_PYTHON_DEPENDS programs)
  # A compiled module works with one minor version only.
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" this ${CAFFE_PYTHON_VERSION})
  math(EXPR next "${CMAKE_MATCH_2} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
      "python3 (>= ${this}), python3 (<< ${CMAKE_MATCH_1}.${next}), python3-numpy, python3-protobuf")
  # For caffe new and caffe evaluate.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-pil, python3-sklearn, python3-jinja2")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
      ${PROJECT_SOURCE_DIR}/cmake/debian/postinst ${PROJECT_SOURCE_DIR}/cmake/debian/prerm)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONFLICTS "python3-caffe-cpu, python3-caffe-cuda")
endif()

include(CPack)
