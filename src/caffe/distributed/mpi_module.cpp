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

// Loads the library, whose symbols the module uses. A Python environment has its own one in the
// folder lib, some levels above this library. Returns false if there is none.
bool LoadMpi(const Family& family, int flags = 0) {
  std::string folder = BesideLibrary("");
  for (int level = 0; level < 6; ++level, folder += "../") {
    for (const char* library : family.libraries) {
      const std::string path = level == 0 ? library : StrCat(folder, "lib/", library);
      if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | flags) != nullptr) return true;
    }
  }
  return false;
}

// The family whose launcher has started this process, or whose library this program uses already.
// PMIx, as in Slurm, starts both: then the first one that is installed. Never loads both, which
// have the same symbols.
const Family& FamilyOfProcess() {
  for (const Family* family : {&kOpenMpi, &kMpich}) {
    if (LoadMpi(*family, RTLD_NOLOAD)) return *family;
  }
  if (IsSet("OMPI_COMM_WORLD_SIZE")) return kOpenMpi;
  if (IsSet("PMI_SIZE") && !IsSet("PMIX_NAMESPACE")) return kMpich;
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
