// SyncedTensor: a plan's tensor and the user's plain view of it, kept equal on demand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// The plan sees storage in its own dtype, layout and memory. The user sees plain row-major
// host memory of the type asked for. Where both are the same bytes no copy exists; otherwise
// a mirror is filled when it is read and written back before the plan runs, whichever of the
// tensors that share the storage it belongs to. One thread at a time; tensors that share a storage
// may be read in several, by nets that share weights. Storage is allocated (zero-filled) on first
// use.
class SyncedTensor {
 public:
  explicit SyncedTensor(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~SyncedTensor() { DropMirror(); }
  SyncedTensor(const SyncedTensor&) = delete;
  SyncedTensor& operator=(const SyncedTensor&) = delete;

  const TensorDesc& desc() const { return desc_; }
  // false: the plan reuses its memory, so there is nothing for the user to see. Whoever gives the
  // user's view has to check.
  bool is_kept() const { return is_kept_; }
  void set_is_kept(bool is_kept) { is_kept_ = is_kept; }
  // Another number whenever the storage has been written, by the plan or by the user's view (which
  // reaches it in data()), and for other storage. Also whenever somebody holds the storage itself,
  // or has held it since the last call, because nobody can tell what has been written there. Writes
  // by a pointer of mutable_host() are noticed when that is called, not later.
  uint64_t version() const;

  // Changes shape, dtype or layout. Contents survive when the element count and dtype stay,
  // are zeroed otherwise.
  void Reset(const TensorDesc& desc);
  // The same for whoever overwrites the contents before they are read: memory that is large enough
  // and that nobody shares or holds serves again as it is.
  void ResetForOverwriting(const TensorDesc& desc);

  // Uses `other`'s storage from now on. Counts must agree.
  void ShareWith(const SyncedTensor& other);

  // The same where that holds the same elements in the same form; on devices whose memory the host
  // reads.
  void ShareIfEqual(SyncedTensor& other);

  // Whether other tensors have this storage, too.
  bool is_shared() const { return storage_.use_count() > 1; }
  // Gets storage of its own, without the contents.
  void Detach() {
    DropMirror();
    storage_ = std::make_shared<Storage>();
  }

  // Keeps the elements in `memory`, of at least their size on this device, from now on; contents
  // move along, and tensors that share the storage too.
  void MoveTo(std::shared_ptr<void> memory);

  // User's side: plain row-major elements of T. mutable_host() makes the user's view the newer.
  template <typename T>
  const T* host() {
    return static_cast<const T*>(Host(kDTypeOf<T>));
  }
  template <typename T>
  T* mutable_host() {
    T* elements = static_cast<T*>(Host(kDTypeOf<T>));
    host_is_newer_ = !is_direct(kDTypeOf<T>);
    if (!host_is_newer_) {
      mirror_is_stale_ = true;
      storage_->version = NextVersion();
    }
    return elements;
  }
  // The same memory, for as long as the pointer is kept. A mirror that somebody holds is compared
  // before the plan runs and filled after it, so that both sides see each other's writes. Reset()
  // to other contents and ShareWith() leave the holder with what was there.
  std::shared_ptr<void> HoldHost(DType dtype);

  // Plan's side. Both write back the users' changes first; data() allocates nothing once the
  // storage exists. MarkWritten() says that the plan has written the storage, so that a mirror is
  // stale.
  TensorView View() { return {desc_, data()}; }
  void* data();
  void MarkWritten() {
    mirror_is_stale_ = true, host_is_newer_ = false;
    storage_->version = NextVersion();
    if (is_held()) FillMirror();
  }
  void WriteBack();

  void Zero();

 private:
  // Storage is shared by tensors that share parameters.
  struct Storage {
    std::shared_ptr<void> memory;
    size_t bytes = 0;  // of memory
    std::atomic<uint64_t> version = NextVersion();
    std::atomic<bool> was_held = false;  // since its version was asked for
    // A version, too: when somebody who holds it may have written.
    std::atomic<uint64_t> may_have_changed = 0;
    std::mutex mirrored_mutex;
    std::vector<SyncedTensor*> mirrored;  // those of its tensors that have a mirror
  };
  static uint64_t NextVersion();

  bool is_direct(DType dtype) const {
    return device_->is_host_accessible() && dtype == desc_.dtype && desc_.layout == Layout::kPlain;
  }
  bool is_held() const { return mirror_ != nullptr && mirror_.use_count() > 1; }
  size_t mirror_bytes() const { return static_cast<size_t>(desc_.count()) * SizeOf(mirror_dtype_); }
  void* Host(DType dtype);
  bool may_be_newer() const { return host_is_newer_ || !filled_with_.empty(); }
  void WriteBackSharers();
  void FillMirror();
  void RememberMirror();
  void DropMirror();
  TensorView StorageView();
  void EnsureStorage();

  std::shared_ptr<Device> device_;
  TensorDesc desc_;
  bool is_kept_ = true;
  std::shared_ptr<Storage> storage_ = std::make_shared<Storage>();
  std::shared_ptr<char[]> mirror_;
  // Contents of a held mirror when it was last equal to the storage, by which its holder's writes
  // are noticed. A holder that wrote nothing must not undo what another tensor has written.
  std::vector<char> filled_with_;
  uint64_t mirror_version_ = 0;  // of the storage when it was as the mirror
  DType mirror_dtype_ = DType::kFloat;
  bool mirror_is_stale_ = true;
  bool host_is_newer_ = false;
};

}  // namespace caffe
