// Lets a child made by fork() compute with threads.
#include <omp.h>
#include <pthread.h>

namespace caffe {
namespace {

// GCC's OpenMP keeps the threads of a parallel region for the next one. fork() copies only the
// calling thread, so a child would wait for the others forever. Ending the pool before fork() lets
// parent and child each start one when needed.
[[maybe_unused]] const int ends_pool_at_fork =
    ::pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);

}  // namespace
}  // namespace caffe
