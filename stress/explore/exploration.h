// Which schedules of a scenario are carried out, and in which order.
//
//   orders    no preemption: all orders in which the players can come to their ends
//   stops     one player is stopped for ever at each point of each order, and the others go on without (execution.cc);
//             at most a third of the budget
//   levels    all schedules with one preemption, then with two, and so on (iterative context bounding: Musuvathi and
//             Qadeer, PLDI 2007), as far as the budget goes
//   random    by seeds: runs of random lengths, in every second one also at points that only one player seems to share
//
// Each schedule is carried out anew from the beginning, up to its last decision, and from there without preemption;
// what it came to there gives the schedules with one decision more. So each is carried out once. A level that does not
// fit into the budget is sampled: of its schedules so many are chosen, by a fixed seed.
//
// A preemption matters only before an access that meets another player's: to a word that two players access in one
// execution, one of them writing, or before a restartable sequence. Which words these are is learnt from the
// executions, some random ones to begin with; one that only a later schedule brings to light counts from then on.
#ifndef RTSPAN_STRESS_EXPLORE_EXPLORATION_H
#define RTSPAN_STRESS_EXPLORE_EXPLORATION_H

#include <optional>
#include <string>
#include <vector>

#include "execution.h"
#include "random.h"

namespace stress {

struct Budget {
    uint64_t schedules = 1000;  // systematic ones
    unsigned preemptions = 3;   // at most
    uint64_t random = 200;
    uint64_t seed = 1;
};

struct Failure {
    std::string what;
    Schedule schedule;
    unsigned points;
    uint64_t number;  // the how manieth schedule of the scenario it was
};

class Exploration {
  public:
    Exploration(const Scenario& scenario, const Budget& budget) : scenario_(scenario), budget_(budget) {}

    // The first that fails, with as few preemptions as leaving some out gives.
    std::optional<Failure> run();
    // What was done: schedules by kind.
    const std::string& summary() const { return summary_; }
    uint64_t schedules() const { return executed_; }

  private:
    // A schedule up to its last decision; the decisions of its first `settled` steps have had their turn.
    struct Branch {
        Schedule schedule;
        unsigned settled = 0;
    };
    // A level's branches; of more than kMost a uniform sample.
    class Level {
      public:
        void add(Branch branch, Random& random);
        // Each once, in a random order where `sampled`.
        Branch take(Random& random, bool sampled);
        bool is_empty() const { return branches_.empty(); }
        uint64_t size() const { return branches_.size(); }
        uint64_t seen() const { return seen_; }

      private:
        static constexpr size_t kMost = 100000;
        std::vector<Branch> branches_;
        uint64_t seen_ = 0;
    };

    // These are false where a schedule failed.
    bool explore();
    bool execute(const Schedule& schedule, const Chance& chance = {});
    void learn_words();
    void note(const char* what, uint64_t count, const Level& level);
    Failure shrink(Failure failure);
    // Adds the branches of the last execution, which was of `branch`, to those levels that are wanted.
    void branch_out(const Branch& branch, Level* orders, Level* stops, Level* preempted);
    bool explore_orders(Level* stops, Level* preempted);
    bool explore_stops(Level& stops);
    bool explore_level(unsigned number, Level& level, Level& next);
    bool explore_random(uint64_t schedules);

    const Scenario& scenario_;
    const Budget budget_;
    Random random_{1};
    std::optional<Failure> failure_;
    std::string summary_;
    uint64_t executed_ = 0, diverged_ = 0;
    unsigned most_points_ = 0;
};

}  // namespace stress

#endif
