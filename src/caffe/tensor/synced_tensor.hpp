// SyncedTensor: a tensor of a plan with a plain view for users; both are synchronized on demand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/tensor/stored_elements.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// The plan sees storage in its own dtype, layout and memory. The user sees plain row-major host
// memory of the requested type. If both are the same bytes, no copy exists. Otherwise a mirror is
// filled when it is read, and written back before the plan runs, even if it belongs to another
// tensor with the same storage. One thread at a time; tensors that share a storage may be read in
// several threads, by nets that share weights. Storage is allocated (zero-filled) on first use.
class SyncedTensor {
 public:
  // How the contents were computed from other tensors.
  struct Recipe {
    uint64_t steps = 0;              // identifies the computation; 0: unknown
    std::vector<uint64_t> versions;  // of the other tensors
    bool operator==(const Recipe&) const = default;
  };

  explicit SyncedTensor(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~SyncedTensor() { DropMirror(); }
  SyncedTensor(const SyncedTensor&) = delete;
  SyncedTensor& operator=(const SyncedTensor&) = delete;

  const TensorDesc& desc() const { return desc_; }
  // False if the plan reuses the memory, so users cannot see the tensor. Callers that give out the
  // user's view must check.
  bool is_kept() const { return is_kept_; }
  void set_is_kept(bool is_kept) { is_kept_ = is_kept; }
  // Changes whenever the storage is written, by the plan or by the user's view (as of the next
  // data()), and when the storage is replaced. Also changes while somebody holds the storage
  // itself, or has held it since the last call, because such writes cannot be noticed. Writes by a
  // pointer of mutable_host() are noticed when mutable_host() is called, not later.
  uint64_t version() const;

  // Changes shape, dtype or layout. Contents survive if element count and dtype stay and both
  // layouts are plain; otherwise they are zeroed.
  void Reset(const TensorDesc& desc);
  // The same for callers that overwrite the contents before reading them: memory that is large
  // enough and neither shared nor held is reused without zeroing.
  void ResetForOverwriting(const TensorDesc& desc);

  // Uses `other`'s storage from now on. Counts must agree.
  void ShareWith(const SyncedTensor& other);

  // True if other tensors use this storage, too.
  bool is_shared() const { return storage_.use_count() > 1; }
  // Allocates new storage, without copying the contents.
  void Detach() {
    DropMirror();
    storage_ = std::make_shared<Storage>();
  }

  // The contents are those of `origin` from now on. They are read when somebody first needs them,
  // and again if they were only borrowed before.
  void SetOrigin(std::shared_ptr<const Origin> origin);
  // Where the contents are while they are not in memory; null if they are.
  std::shared_ptr<const Origin> AbsentFrom() const { return storage_->elements.AbsentFrom(); }
  // The same as data(), but until Return(), after which contents that have an origin are freed
  // unless data() or a user has asked for their address.
  void* Borrow();
  void Return();
  // Adds the bytes of storage and mirror; a storage that is in `counted` only once.
  int64_t HeldBytes(std::set<const void*>* counted) const;

  // The recipe is kept with the storage, so that tensors that share it know it, until the next
  // write.
  void SetRecipe(const Recipe& recipe) { storage_->recipe = recipe; }
  const Recipe& recipe() const { return storage_->recipe; }

  // Moves the contents to `memory`, which is large enough on this device, and keeps them there.
  // Tensors that share the storage move along.
  void MoveTo(std::shared_ptr<void> memory);

  // User's side: plain row-major elements of T. mutable_host() marks the user's view as newer.
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
      NoteWrite();
    }
    return elements;
  }
  // Keeps the same memory alive as long as the pointer. A held mirror is compared before the plan
  // runs and filled after it, so that both sides see each other's writes. Reset() to other contents
  // and ShareWith() leave the holder with the old memory.
  std::shared_ptr<void> HoldHost(DType dtype);

  // Plan's side. Both write back the users' changes first; data() allocates nothing once the
  // storage exists. MarkWritten() tells that the plan has written the storage, so that mirrors are
  // stale.
  TensorView View() { return {desc_, data()}; }
  void* data();
  void MarkWritten() {
    mirror_is_stale_ = true, host_is_newer_ = false;
    NoteWrite();
    if (is_held()) FillMirror();
  }
  void WriteBack();
  // Writes back changes by users of all tensors that share the storage, without reading it.
  void WriteBackAll() {
    WriteBackSharers();
    WriteBack();
  }

  void Zero();

 private:
  // Storage is shared by tensors that share parameters.
  struct Storage {
    StoredElements elements;
    Recipe recipe;
    std::atomic<uint64_t> version = NextVersion();
    std::atomic<bool> was_held = false;  // since the last call of version()
    // Version of the last time when a holder may have written.
    std::atomic<uint64_t> may_have_changed = 0;
    std::mutex mirrored_mutex;
    std::vector<SyncedTensor*> mirrored;  // tensors of this storage that have a mirror
  };
  static uint64_t NextVersion();
  void NoteWrite() {
    storage_->version = NextVersion();
    storage_->recipe.steps = 0;
  }

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
  void* Pin() const { return storage_->elements.Pin(*device_, desc_); }

  std::shared_ptr<Device> device_;
  TensorDesc desc_;
  bool is_kept_ = true;
  std::shared_ptr<Storage> storage_ = std::make_shared<Storage>();
  std::shared_ptr<char[]> mirror_;
  // Contents of a held mirror when it was last equal to the storage; used to detect the holder's
  // writes. A holder that wrote nothing must not undo another tensor's writes.
  std::vector<char> filled_with_;
  uint64_t mirror_version_ = 0;  // of the storage when mirror and storage were equal
  DType mirror_dtype_ = DType::kFloat;
  bool mirror_is_stale_ = true;
  bool host_is_newer_ = false;
};

}  // namespace caffe
