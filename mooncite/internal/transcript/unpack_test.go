package transcript

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func pack(t testing.TB, data []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(t testing.TB, packed []byte) ([]byte, error) {
	t.Helper()
	r, err := Unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestUnpack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte('a' + rng.IntN(20))
	}
	packed := pack(t, data)
	if got, err := unpack(t, packed); err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	if got, err := unpack(t, append(bytes.Clone(packed), pack(t, []byte("more"))...)); err != nil || len(got) != len(data)+4 {
		t.Error("two frames:", len(got), err)
	}
	if got, err := unpack(t, nil); err != nil || len(got) != 0 {
		t.Error("nothing:", got, err)
	}
}

// TestUnpackDamage wants the good part and then an error, never a silent end.
func TestUnpackDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte('a' + rng.IntN(20))
	}
	packed := pack(t, data)
	for _, n := range []int{5, 100, len(packed) / 2, len(packed) - 1} {
		got, err := unpack(t, packed[:n])
		if err == nil || !bytes.HasPrefix(data, got) {
			t.Errorf("cut at %d: %d bytes, %v", n, len(got), err)
		}
		if n == len(packed)/2 && len(got) == 0 {
			t.Error("the good part is lost")
		}
	}
	for range 50 {
		bad := bytes.Clone(packed)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		if got, err := unpack(t, bad); err == nil && !bytes.Equal(got, data) {
			t.Fatal("damage went unseen")
		}
	}
	if _, err := unpack(t, []byte("plain text, not packed")); err == nil {
		t.Error("plain text was unpacked")
	}
}

// TestUnpackMemory unpacks far more than it may hold.
func TestUnpackMemory(t *testing.T) {
	packed := pack(t, make([]byte, 96<<20), zstd.WithWindowSize(8<<20))
	r, err := Unpack(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, r)
	if err != nil || n != 96<<20 {
		t.Fatal(n, err)
	}
	runtime.ReadMemStats(&after)
	if after.HeapSys > before.HeapSys+(32<<20) {
		t.Errorf("the heap grew by %d MiB", (after.HeapSys-before.HeapSys)>>20)
	}
	if _, err := unpack(t, pack(t, make([]byte, 24<<20), zstd.WithWindowSize(128<<20))); err == nil {
		t.Error("a window of 128 MiB was granted")
	}
}
