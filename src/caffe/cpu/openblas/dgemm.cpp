#include "caffe/cpu/openblas/dgemm.hpp"

#include <limits>
#include <mutex>

namespace caffe::cpu {
namespace {

std::mutex blas_mutex;
int blas_users = 0;
int blas_threads = 1;  // before the first user

}  // namespace

// In a build with OpenMP, OpenBLAS sets OpenMP's number of threads along with its own.
OneThreadInBlas::OneThreadInBlas() {
  const std::lock_guard lock(blas_mutex);
  if (blas_users++ > 0) return;
  blas_threads = openblas_get_num_threads();
  const int own_threads = omp_get_max_threads();
  openblas_set_num_threads(1);
  omp_set_num_threads(own_threads);
}

OneThreadInBlas::~OneThreadInBlas() {
  const std::lock_guard lock(blas_mutex);
  if (--blas_users > 0) return;
  const int own_threads = omp_get_max_threads();
  openblas_set_num_threads(blas_threads);
  omp_set_num_threads(own_threads);
}

void Dgemm(int64_t rows, int64_t columns, int64_t inner, const DoubleMatrix& a,
           const DoubleMatrix& b, bool accumulates, double* c, int64_t c_stride) {
  const auto transpose = [](const DoubleMatrix& m) {
    return m.transposed ? CblasTrans : CblasNoTrans;
  };
  cblas_dgemm(CblasRowMajor, transpose(a), transpose(b), static_cast<blasint>(rows),
              static_cast<blasint>(columns), static_cast<blasint>(inner), 1.0, a.data,
              static_cast<blasint>(a.stride), b.data, static_cast<blasint>(b.stride),
              accumulates ? 1.0 : 0.0, c, static_cast<blasint>(c_stride));
}

bool FitsBlas(int64_t extent) {
  return extent <= std::numeric_limits<blasint>::max();
}

}  // namespace caffe::cpu
