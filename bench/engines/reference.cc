// Windows of the C++ reference behind four functions of C, so that its rounds take turns with ours in one process.
//
// Built against a clone of IBM/sliding-window-aggregators (bench/experiments/reference.py), of which nothing is here.
// The aggregates are written here: its geometric mean is in single precision and begins with 1 instead of nothing.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#define _UTILS_H_  // its clocks and dates: not used, and they need another library
#include "DABA.hpp"
#include "DABALite.hpp"
#include "FiBA.hpp"
#include "Reactive.hpp"
#include "TwoStacks.hpp"
#include "TwoStacksLite.hpp"

namespace {

struct Number {  // an aggregate whose partials are plain numbers
  typedef double In, Partial, Out;
  double lift(double x) const { return x; }
  double lower(double partial) const { return partial; }
};

struct Sum : Number {
  static constexpr double identity = 0.0;
  double combine(double older, double newer) const { return older + newer; }
};

struct Max : Number {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  double combine(double older, double newer) const { return newer > older ? newer : older; }
};

struct Logarithms {
  double total;
  int64_t n;
  bool operator==(Logarithms const& other) const { return total == other.total && n == other.n; }
  bool operator!=(Logarithms const& other) const { return !(*this == other); }
  friend std::ostream& operator<<(std::ostream& out, Logarithms const& own) { return out << own.total << "/" << own.n; }
};

struct GeometricMean {
  typedef double In, Out;
  typedef Logarithms Partial;
  static constexpr Logarithms identity = {0.0, 0};
  Logarithms lift(double x) const { return {std::log(x), 1}; }
  Logarithms combine(Logarithms const& older, Logarithms const& newer) const {
    return {older.total + newer.total, older.n + newer.n};
  }
  double lower(Logarithms const& partial) const { return std::exp(partial.total / partial.n); }
};

class Window {
 public:
  virtual ~Window() = default;
  virtual void insert(int64_t const* times, double const* values, int64_t n) = 0;
  virtual void rounds(int64_t const* times, double const* values, int64_t n, double* answers) = 0;
};

template <class Aggregate>
class Queue : public Window {
 public:
  template <class Function>
  explicit Queue(Function function) : window_(function, Function::identity) {}

  void insert(int64_t const*, double const* values, int64_t n) override {
    for (int64_t i = 0; i < n; i++) window_.insert(values[i]);
  }

  void rounds(int64_t const*, double const* values, int64_t n, double* answers) override {
    for (int64_t i = 0; i < n; i++) {
      window_.evict();
      window_.insert(values[i]);
      answers[i] = window_.query();
    }
  }

 private:
  Aggregate window_;
};

template <class Aggregate>
class Tree : public Window {
 public:
  template <class Function>
  explicit Tree(Function function) : window_(function) {}

  void insert(int64_t const* times, double const* values, int64_t n) override {
    for (int64_t i = 0; i < n; i++) window_.insert(times[i], values[i]);
  }

  void rounds(int64_t const* times, double const* values, int64_t n, double* answers) override {
    for (int64_t i = 0; i < n; i++) {
      window_.insert(times[i], values[i]);  // first, as ours
      window_.evict();
      answers[i] = window_.query();
    }
  }

 private:
  Aggregate window_;
};

template <int min_arity, class Function>
using Finger = Tree<btree::Aggregate<int64_t, min_arity, btree::finger, Function>>;

template <class Function>
Window* make(std::string const& algorithm, Function f) {
  if (algorithm == "two_stacks") return new Queue<twostacks::Aggregate<Function>>(f);
  if (algorithm == "two_stacks_lite") return new Queue<twostackslite::Aggregate<Function>>(f);
  if (algorithm == "daba") return new Queue<daba::Aggregate<Function, true>>(f);
  if (algorithm == "daba_lite") return new Queue<dabalite::Aggregate<Function>>(f);
  if (algorithm == "reactive") return new Queue<reactive::Aggregate<Function>>(f);
  if (algorithm == "fiba, min-arity 2") return new Finger<2, Function>(f);
  if (algorithm == "fiba, min-arity 4") return new Finger<4, Function>(f);
  if (algorithm == "fiba, min-arity 8") return new Finger<8, Function>(f);
  return nullptr;
}

}  // namespace

extern "C" {

// An empty window; null if there is none of these names.
Window* open_window(char const* algorithm, char const* function) {
  std::string const name(function);
  if (name == "sum") return make(algorithm, Sum());
  if (name == "max") return make(algorithm, Max());
  if (name == "geomean") return make(algorithm, GeometricMean());
  return nullptr;
}

void insert(Window* window, int64_t const* times, double const* values, int64_t n) { window->insert(times, values, n); }

void rounds(Window* window, int64_t const* times, double const* values, int64_t n, double* answers) {
  window->rounds(times, values, n, answers);
}

void close_window(Window* window) { delete window; }
}
