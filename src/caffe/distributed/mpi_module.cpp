#include "caffe/distributed/mpi_module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "caffe/core/module.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// MPI libraries with one binary interface.
struct Family {
  const char* name;
  const char* module;
  std::vector<const char*> libraries;  // the first one found is used
};

const Family kOpenMpi = {"Open MPI", "caffe_openmpi", {"libmpi.so.40"}};
// Also Intel MPI and MVAPICH. Debian gives the library its own name.
const Family kMpich = {"MPICH", "caffe_mpich", {"libmpi.so.12", "libmpich.so.12"}};

bool IsSet(const char* variable) {
  return std::getenv(variable) != nullptr;
}

// The folder lib of the Python environment that this library is installed in, or nothing.
std::string LibrariesOfEnvironment() {
  const std::string folder = BesideLibrary("");
  const size_t python = folder.find("/lib/python");
  return python == std::string::npos ? "" : folder.substr(0, python) + "/lib/";
}

// Loads the library, whose symbols the module uses: that of the Python environment, or else the
// system's. Returns false if there is none.
bool LoadMpi(const Family& family, int flags = 0) {
  const std::string environment = LibrariesOfEnvironment();
  for (const char* library : family.libraries) {
    const auto load = [&](const std::string& path) {
      return ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | flags) != nullptr;
    };
    if (!environment.empty() && load(environment + library)) return true;
    if (load(library)) return true;
  }
  return false;
}

// The family whose library this program uses already, or whose launcher has started this process.
// Slurm's PMI-2 starts MPICH, and Open MPI if it was built for that; PMIx starts both. Then it is
// the first one that is installed. Never loads both, which have the same symbols.
const Family& FamilyOfProcess() {
  for (const Family* family : {&kOpenMpi, &kMpich}) {
    if (LoadMpi(*family, RTLD_NOLOAD)) return *family;
  }
  if (IsSet("OMPI_COMM_WORLD_SIZE") || IsSet("OMPI_MCA_pmix")) return kOpenMpi;
  if (IsSet("MPI_LOCALNRANKS")) return kMpich;  // from its mpirun
  if (IsSet("PMI_SIZE") && !IsSet("PMIX_NAMESPACE")) return LoadMpi(kMpich) ? kMpich : kOpenMpi;
  return LoadMpi(kOpenMpi) || !LoadMpi(kMpich) ? kOpenMpi : kMpich;
}

const MpiModule* Load(const Family& family) {
  if (!LoadMpi(family)) {
    throw Unsupported(
        StrCat("the library of ", family.name, " (", family.libraries[0], ") is not installed"));
  }
  const auto create = reinterpret_cast<const MpiModule* (*)()>(
      LoadModule(family.module, "caffe_mpi_module",
                 StrCat("ranks on ", family.name, " need the module for it")));
  return create();
}

}  // namespace

const MpiModule* MpiModule::Find(std::string* why) {
  try {
    static const MpiModule* const module = Load(FamilyOfProcess());
    *why = module->WhyNotLaunched();
    return why->empty() ? module : nullptr;
  } catch (const Unsupported& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace caffe
