// A child made by fork() can compute with threads.
#include <omp.h>
#include <pthread.h>

namespace caffe {
namespace {

// GCC's OpenMP keeps the threads of a parallel region for the next one, and a child would wait for
// these for ever: fork() copies the calling thread alone. Without a pool, the parent and the child
// each start one when they need it.
[[maybe_unused]] const int ends_pool_at_fork =
    ::pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);

}  // namespace
}  // namespace caffe
