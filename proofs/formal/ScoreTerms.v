(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* A score where queries and keys have biases (chapter 31): its four terms (gpt2.expand, gpt2.delta, gpt2.gamma);
   which of them a softmax sees without a sink (gpt2.irrelevant) and with one (terms.sink, terms.zeroed); the terms
   under rotary positions (terms.rotated) and summed over heads (gpt2.unsplit). x *[D] W is a row x of width D times
   a matrix W; d is the width of a query. Assumed, where there is no sink: the row has a key. *)

From Sinkproof Require Import Sums SoftmaxSink Rope.
From Coq Require Import Reals List Arith Lia Lra Rtrigo.
Import ListNotations.
Open Scope R_scope.

Lemma dot_add_l d u v w : (u + v) ⋅[d] w = u ⋅[d] w + v ⋅[d] w.
Proof. unfold vdot, vadd. rewrite <- Sum_plus. apply Sum_ext. intros. ring. Qed.

Lemma dot_add_r d u v w : u ⋅[d] (v + w) = u ⋅[d] v + u ⋅[d] w.
Proof. unfold vdot, vadd. rewrite <- Sum_plus. apply Sum_ext. intros. ring. Qed.

Lemma dot_four d a b c e : (a + b) ⋅[d] (c + e) = a ⋅[d] c + a ⋅[d] e + b ⋅[d] c + b ⋅[d] e.
Proof. rewrite dot_add_l, !dot_add_r. ring. Qed.

(*> gpt2.expand *)
Theorem gpt2_expand D d x_t x_j W_Q b_Q W_K b_K :
  (x_t *[D] W_Q + b_Q) ⋅[d] (x_j *[D] W_K + b_K) =
  (x_t *[D] W_Q) ⋅[d] (x_j *[D] W_K) + (x_t *[D] W_Q) ⋅[d] b_K + b_Q ⋅[d] (x_j *[D] W_K) + b_Q ⋅[d] b_K.
Proof. apply dot_four. Qed.
(*< gpt2.expand *)

(*> gpt2.delta *)
Definition delta D d b_Q W_K x_j : R := b_Q ⋅[d] (x_j *[D] W_K).

(* The query's bias adds the same number to a score, whatever the query's token is. *)
Theorem gpt2_delta D d a_t b_Q x_j W_K b_K :
  (a_t + b_Q) ⋅[d] (x_j *[D] W_K + b_K) - a_t ⋅[d] (x_j *[D] W_K + b_K) =
  delta D d b_Q W_K x_j + b_Q ⋅[d] b_K.
Proof. unfold delta. rewrite dot_four, dot_add_r. ring. Qed.
(*< gpt2.delta *)

(*> gpt2.gamma *)
Definition transpose (W : mat) : mat := fun k c => W c k.
Definition gamma d b_Q W_K : vec := (b_Q *[d] transpose W_K)%V.

Theorem gpt2_gamma D d b_Q W_K x_j : delta D d b_Q W_K x_j = gamma d b_Q W_K ⋅[D] x_j.
Proof.
  unfold delta, gamma, transpose, vdot, vmul.
  rewrite (Sum_ext _ _ (fun r => ∑ c < D, b_Q r * (x_j c * W_K c r))) by (intros; now rewrite Sum_scal_l).
  rewrite Sum_swap. apply Sum_ext. intros c. rewrite <- Sum_scal_r. apply Sum_ext. intros. ring.
Qed.
(*< gpt2.gamma *)

(* ---- which terms a softmax sees ---- *)

Section Row.
  Context {key : Type}.
  Implicit Types (J : list key) (s : key -> R) (cs : key -> vec).

  Lemma sum_exp_plus J s c : ∑ j ∈ J, exp (s j + c) = (∑ j ∈ J, exp (s j)) * exp c.
  Proof. rewrite <- Sum_scal_r. apply Sum_ext. intros. apply exp_plus. Qed.

  Lemma softmax_ext J s s' j : (forall k, s k = s' k) -> softmax J s j = softmax J s' j.
  Proof.
    intros E. unfold softmax. rewrite E, (Sum_ext J (fun k => exp (s k)) (fun k => exp (s' k))); [reflexivity|].
    intros. now rewrite E.
  Qed.

  Lemma alpha_ext J s s' b j : (forall k, s k = s' k) -> alpha J s b j = alpha J s' b j.
  Proof.
    intros E. unfold alpha. rewrite E, (Sum_ext J (fun k => exp (s k)) (fun k => exp (s' k))); [reflexivity|].
    intros. now rewrite E.
  Qed.

  Lemma alpha_sink_ext J s s' b : (forall k, s k = s' k) -> alpha_sink J s b = alpha_sink J s' b.
  Proof.
    intros E. unfold alpha_sink. rewrite (Sum_ext J (fun k => exp (s k)) (fun k => exp (s' k))); [reflexivity|].
    intros. now rewrite E.
  Qed.

  Lemma softmax_constant J s c j : J <> [] -> softmax J (fun k => s k + c) j = softmax J s j.
  Proof.
    intros HJ. unfold softmax. rewrite sum_exp_plus, exp_plus.
    pose proof (sum_exp_pos J s HJ). pose proof (exp_pos c). field. lra.
  Qed.

  (*> gpt2.irrelevant *)
  (* J lists the keys that the row sees, and may be any list. The scale divides by r. *)
  Theorem gpt2_irrelevant J d a_t b_Q cs b_K r j : J <> [] ->
    softmax J (fun j => ((a_t + b_Q) ⋅[d] (cs j + b_K)) / r) j =
    softmax J (fun j => (a_t ⋅[d] cs j + b_Q ⋅[d] cs j) / r) j.
  Proof.
    intros HJ. rewrite <- (softmax_constant J (fun j => (a_t ⋅[d] cs j + b_Q ⋅[d] cs j) / r)
      ((a_t ⋅[d] b_K + b_Q ⋅[d] b_K) / r)) by exact HJ.
    apply softmax_ext. intros k. rewrite dot_four. unfold Rdiv. ring.
  Qed.
  (*< gpt2.irrelevant *)

  (*> terms.sink *)
  (* A constant that is added to the scores of all keys of a row, but not to the sink, acts as another sink
     logit. *)
  Theorem terms_sink J s b c_t j :
    alpha J (fun j => s j + c_t) b j = alpha J s (b - c_t) j /\
    alpha_sink J (fun j => s j + c_t) b = alpha_sink J s (b - c_t).
  Proof.
    rewrite <- (alpha_shift J (fun j => s j + c_t) b c_t), <- (alpha_sink_shift J (fun j => s j + c_t) b c_t).
    split; [apply alpha_ext | apply alpha_sink_ext]; intros; ring.
  Qed.

  (* The two terms that do not depend on the key are such a constant. *)
  Theorem terms_sink_scores J d a_t b_Q cs b_K r b j :
    let s j := ((a_t + b_Q) ⋅[d] (cs j + b_K)) / r in
    let s' j := (a_t ⋅[d] cs j + b_Q ⋅[d] cs j) / r in
    let b_t := b - (a_t ⋅[d] b_K + b_Q ⋅[d] b_K) / r in
    alpha J s b j = alpha J s' b_t j /\ alpha_sink J s b = alpha_sink J s' b_t.
  Proof.
    cbv zeta. destruct (terms_sink J (fun j => (a_t ⋅[d] cs j + b_Q ⋅[d] cs j) / r) b
                          ((a_t ⋅[d] b_K + b_Q ⋅[d] b_K) / r) j) as [<- <-].
    split; [apply alpha_ext | apply alpha_sink_ext]; intros; rewrite dot_four; unfold Rdiv; ring.
  Qed.

  (* A larger constant makes the sink's weight strictly smaller. So the constant has no effect only if it is
     0. *)
  Theorem terms_sink_strict J s b c c' : J <> [] -> c < c' ->
    alpha_sink J (fun j => s j + c') b < alpha_sink J (fun j => s j + c) b.
  Proof.
    intros HJ L. unfold alpha_sink. rewrite !sum_exp_plus. pose proof (sum_exp_pos J s HJ) as P.
    pose proof (exp_increasing _ _ L). pose proof (exp_pos b). pose proof (exp_pos c).
    apply Rmult_lt_compat_l; [lra|]. apply Rinv_lt_contravar.
    - apply Rmult_lt_0_compat; apply Rplus_lt_0_compat; try lra; apply Rmult_lt_0_compat; lra.
    - apply Rplus_lt_compat_l, Rmult_lt_compat_l; lra.
  Qed.

  Theorem terms_sink_cancels J s b c_t : J <> [] ->
    (alpha_sink J (fun j => s j + c_t) b = alpha_sink J s b <-> c_t = 0).
  Proof.
    intros HJ. assert (Z : alpha_sink J (fun j => s j + 0) b = alpha_sink J s b)
      by (apply alpha_sink_ext; intros; ring).
    split; [|intros ->; exact Z]. intros E. destruct (Rtotal_order c_t 0) as [L | [E0 | G]]; [|exact E0|].
    - pose proof (terms_sink_strict J s b c_t 0 HJ L). lra.
    - pose proof (terms_sink_strict J s b 0 c_t HJ G). lra.
  Qed.

  (* softmax_1 has the sink logit 0, so the constant acts as the sink logit -c_t. *)
  Theorem terms_sink_softmax1 J s c_t j : softmax1 J (fun j => s j + c_t) j = alpha J s (- c_t) j.
  Proof.
    rewrite <- (Rminus_0_l c_t), <- (proj1 (terms_sink J s 0 c_t j)). unfold softmax1, alpha.
    now rewrite exp_0.
  Qed.
  (*< terms.sink *)

  (*> terms.zeroed *)
  (* e k is subtracted from the score of each key k; the sink keeps its logit. *)
  Theorem terms_zeroed J s e b j :
    alpha J (fun j => s j - e j) b j =
    alpha J s b j * exp (- e j) / (alpha_sink J s b + ∑ k ∈ J, alpha J s b k * exp (- e k)).
  Proof.
    pose proof (den_pos J s b). pose proof (den_pos J (fun k => s k - e k) b).
    assert (E : ∑ k ∈ J, alpha J s b k * exp (- e k) =
                (∑ k ∈ J, exp (s k - e k)) / (exp b + ∑ k ∈ J, exp (s k))).
    { rewrite <- Sum_div. apply Sum_ext. intros k. unfold alpha, Rminus. rewrite exp_plus. field. lra. }
    rewrite E. unfold alpha, alpha_sink, Rminus in *. rewrite exp_plus. field. lra.
  Qed.

  (* Without a sink: the query's bias is set to 0. This also removes b_Q b_K, which all keys share and no
     softmax sees. *)
  Theorem terms_zeroed_bias J d a_t b_Q cs b_K r j : J <> [] ->
    let w := softmax J (fun j => ((a_t + b_Q) ⋅[d] (cs j + b_K)) / r) in
    let Δ j := b_Q ⋅[d] cs j in
    softmax J (fun j => (a_t ⋅[d] (cs j + b_K)) / r) j =
    w j * exp (- (Δ j / r)) / ∑ k ∈ J, w k * exp (- (Δ k / r)).
  Proof.
    intros HJ. cbv zeta. set (Δ j := b_Q ⋅[d] cs j). set (κ := (b_Q ⋅[d] b_K) / r).
    set (s j := ((a_t + b_Q) ⋅[d] (cs j + b_K)) / r). set (s' j := (a_t ⋅[d] (cs j + b_K)) / r).
    assert (E : forall k, exp (s k) * exp (- (Δ k / r)) = exp (s' k) * exp κ).
    { intros k. rewrite <- !exp_plus. f_equal. unfold s, s', Δ, κ, Rdiv. rewrite dot_four, dot_add_r. ring. }
    pose proof (sum_exp_pos J s HJ). pose proof (sum_exp_pos J s' HJ). pose proof (exp_pos κ).
    rewrite (Sum_ext _ _ (fun k => exp (s' k) * (exp κ / ∑ j ∈ J, exp (s j)))).
    2: { intros k. unfold softmax. unfold Rdiv. rewrite Rmult_assoc, (Rmult_comm (/ _)), <- Rmult_assoc, E. ring. }
    rewrite Sum_scal_r. unfold softmax at 1 2.
    replace (exp (s j) / (∑ j ∈ J, exp (s j)) * exp (- (Δ j / r)))
      with (exp (s' j) * (exp κ / ∑ j ∈ J, exp (s j))).
    - field. repeat split; lra.
    - unfold Rdiv. rewrite (Rmult_comm (exp (s j))), Rmult_assoc, E. ring.
  Qed.
  (*< terms.zeroed *)
End Row.

(* ---- rotary positions ---- *)

Lemma rotate_add half ω γ t u v : rotate half ω γ t (u + v) = (rotate half ω γ t u + rotate half ω γ t v)%V.
Proof. apply vec_eq. intros c. unfold rotate, vadd. destruct (c <? half); ring. Qed.

Lemma dot_ext d u v w : (forall c, (c < d)%nat -> v c = w c) -> u ⋅[d] v = u ⋅[d] w.
Proof. intros E. apply Sum_ext_in. intros c Hc. apply in_seq in Hc. rewrite E by lia. reflexivity. Qed.

Section Rotated.
  Variable half : nat.
  Variable ω : nat -> R.
  Let d := (half + half)%nat.
  Let R' n := rotate half ω 1 n.

  Lemma still u n c : (forall p, (p < half)%nat -> ω p <> 0 -> u p = 0 /\ u (p + half)%nat = 0) ->
    (c < half + half)%nat -> rotate half ω 1 n u c = u c.
  Proof.
    intros Z Hc. destruct (lt_dec c half) as [L | G]; [|replace c with (c - half + half)%nat by lia];
      [set (p := c) | set (p := (c - half)%nat)];
      rewrite ?rotate_second, ?rotate_first by (unfold p; lia);
      (destruct (Req_dec (ω p) 0) as [E | N];
       [rewrite E, Rmult_0_r, cos_0, sin_0; ring | destruct (Z p ltac:(unfold p; lia) N) as [E1 E2]]);
      rewrite ?E1, ?E2; ring.
  Qed.

  (*> terms.rotated *)
  (* R_n rotates by position n and scales by m; R'_n only rotates. All four terms depend on the difference
     j - t. *)
  Theorem terms_rotated m t j a_t b_Q c_j b_K :
    rotate half ω m t (a_t + b_Q) ⋅[half + half] rotate half ω m j (c_j + b_K) =
    let R' := rotate half ω 1 (j - t) in
    m ^ 2 * (a_t ⋅[half + half] R' c_j + a_t ⋅[half + half] R' b_K +
             b_Q ⋅[half + half] R' c_j + b_Q ⋅[half + half] R' b_K).
  Proof.
    cbv zeta. rewrite (proj1 (proj2 (rope_orthogonal half ω m _ _))), rotate_add, dot_four. reflexivity.
  Qed.

  (* A bias that is 0 in every pair that rotates is not changed by a rotation. Its terms are those without
     positions. *)
  Theorem terms_rotated_still b n u :
    (forall p, (p < half)%nat -> ω p <> 0 -> b p = 0 /\ b (p + half)%nat = 0) ->
    u ⋅[half + half] rotate half ω 1 n b = u ⋅[half + half] b /\
    b ⋅[half + half] rotate half ω 1 n u = b ⋅[half + half] u.
  Proof.
    intros Z. split.
    - apply dot_ext. intros c Hc. apply still; assumption.
    - rewrite <- (Rmult_1_l (b ⋅[_] rotate half ω 1 n u)). replace 1 with (1 ^ 2) at 1 by ring.
      replace n with (0 - - n) at 1 by ring.
      rewrite <- (proj1 (proj2 (rope_orthogonal half ω 1 b u)) (- n) 0).
      transitivity (b ⋅[half + half] rotate half ω 1 0 u).
      + apply Sum_ext_in. intros c Hc. apply in_seq in Hc. rewrite still by (assumption || lia). reflexivity.
      + apply dot_ext. intros c Hc. apply (rope_rotate half ω 1 1 0 0 u c Hc).
  Qed.
  (*< terms.rotated *)
End Rotated.

Lemma softmax_two s : softmax [0%nat; 1%nat] s 1%nat = exp (s 1%nat) / (exp (s 0%nat) + exp (s 1%nat)).
Proof. unfold softmax. simpl. f_equal. ring. Qed.

(*> terms.rotated *)
(* One pair that turns by a right angle, both biases (1, 0): the term b_Q b_K is 1 at distance 0 and 0 at
   distance 1, and a softmax over two keys sees the difference. With a_t or c_j in place of a bias, the same
   holds for the other terms. *)
Theorem terms_rotated_refuted :
  let ω (_ : nat) := PI / 2 in let e (c : nat) := if (c =? 0)%nat then 1 else 0 in
  let s (j : nat) := e ⋅[2] rotate 1 ω 1 (INR j - 1) e in
  s 0%nat = 0 /\ s 1%nat = 1 /\ softmax [0%nat; 1%nat] s 1%nat = exp 1 / (1 + exp 1) /\
  softmax [0%nat; 1%nat] (fun _ => 0) 1%nat = 1 / 2 /\ 1 / 2 < exp 1 / (1 + exp 1).
Proof.
  cbv zeta.
  assert (S0 : (fun c : nat => if (c =? 0)%nat then 1 else 0) ⋅[2]
               rotate 1 (fun _ => PI / 2) 1 (INR 0 - 1) (fun c => if (c =? 0)%nat then 1 else 0) = 0).
  { unfold vdot, rotate. simpl. replace ((0 - 1) * (PI / 2)) with (- (PI / 2)) by ring.
    rewrite cos_neg, cos_PI2. ring. }
  assert (S1 : (fun c : nat => if (c =? 0)%nat then 1 else 0) ⋅[2]
               rotate 1 (fun _ => PI / 2) 1 (INR 1 - 1) (fun c => if (c =? 0)%nat then 1 else 0) = 1).
  { unfold vdot, rotate. simpl. replace ((1 - 1) * (PI / 2)) with 0 by ring. rewrite cos_0. ring. }
  split; [exact S0|]. split; [exact S1|]. pose proof (exp_pos 1) as P.
  pose proof (exp_ineq1 1 ltac:(lra)) as G.
  split; [|split].
  - rewrite softmax_two, S0, S1, exp_0. reflexivity.
  - rewrite softmax_two, exp_0. field.
  - apply (Rmult_lt_reg_r (2 * (1 + exp 1))); [lra|]. field_simplify; lra.
Qed.
(*< terms.rotated *)

(* ---- before the heads are split ---- *)

(*> gpt2.unsplit *)
(* The columns of head h: of a vector, and of a matrix. *)
Definition head m h (u : vec) : vec := fun r => u (h * m + r)%nat.
Definition head_of m h (W : mat) : mat := fun c r => W c (h * m + r)%nat.

Theorem gpt2_unsplit D H m b_Q W_K x_j :
  delta D (H * m) b_Q W_K x_j = (∑ h < H, delta D m (head m h b_Q) (head_of m h W_K) x_j) /\
  forall c, gamma (H * m) b_Q W_K c = ∑ h < H, gamma m (head m h b_Q) (head_of m h W_K) c.
Proof. split; [apply Sum_blocks | intros c; apply Sum_blocks]. Qed.

(* The softmax of a head sees the head's own Δ, divided by the square root of the head's width. *)
Theorem gpt2_unsplit_head {key} (J : list key) D m h x_t W_Q b_Q (x : key -> vec) W_K b_K j : J <> [] ->
  let q := (x_t *[D] W_Q + b_Q)%V in let k j := (x j *[D] W_K + b_K)%V in
  softmax J (fun j => (head m h q ⋅[m] head m h (k j)) / sqrt (INR m)) j =
  softmax J (fun j => (head m h (x_t *[D] W_Q) ⋅[m] head m h (x j *[D] W_K) +
                       delta D m (head m h b_Q) (head_of m h W_K) (x j)) / sqrt (INR m)) j.
Proof.
  intros HJ. cbv zeta. exact (gpt2_irrelevant J m (head m h (x_t *[D] W_Q)%V) (head m h b_Q)
    (fun j => head m h (x j *[D] W_K)%V) (head m h b_K) (sqrt (INR m)) j HJ).
Qed.

(* Two heads of width 1, W_K = I, b_Q = (1, -1); key 0 is (ln 3, ln 3), key 1 is 0. Summed over the heads, Δ
   is 0 at both keys. Head 0 alone gives key 0 the weight 3/4, and head 1 alone gives it 1/4. *)
Theorem gpt2_unsplit_opposite :
  let W_K (c r : nat) := if (c =? r)%nat then 1 else 0 in
  let b_Q (r : nat) := if (r =? 0)%nat then 1 else -1 in
  let x (j : nat) : vec := fun _ => if (j =? 0)%nat then ln 3 else 0 in
  let Δ h j := delta 2 1 (head 1 h b_Q) (head_of 1 h W_K) (x j) in
  (forall j, delta 2 2 b_Q W_K (x j) = 0) /\
  softmax [0%nat; 1%nat] (Δ 0%nat) 0%nat = 3 / 4 /\ softmax [0%nat; 1%nat] (Δ 1%nat) 0%nat = 1 / 4.
Proof.
  cbv zeta. split; [|split].
  - intros j. unfold delta, vdot, vmul. simpl. ring.
  - unfold softmax, delta, vdot, vmul, head, head_of. simpl.
    replace (1 * (ln 3 * 1 + (ln 3 * 0 + 0)) + 0) with (ln 3) by ring.
    replace (1 * (0 * 1 + (0 * 0 + 0)) + 0) with 0 by ring. rewrite exp_ln, exp_0 by lra. field.
  - unfold softmax, delta, vdot, vmul, head, head_of. simpl.
    replace (-1 * (ln 3 * 0 + (ln 3 * 1 + 0)) + 0) with (- ln 3) by ring.
    replace (-1 * (0 * 0 + (0 * 1 + 0)) + 0) with 0 by ring. rewrite exp_Ropp, exp_ln, exp_0 by lra. field.
Qed.

(* b_Q = (1, 1); the keys are (2, 2), (3, 0), (0, 3). Summed over the heads, Δ is 4, 3, 3, so it is largest at
   key 0. In neither head does key 0 have the largest weight. *)
Theorem gpt2_unsplit_none :
  let W_K (c r : nat) := if (c =? r)%nat then 1 else 0 in let b_Q (_ : nat) := 1 in
  let x (j : nat) : vec := fun c => if (j =? 0)%nat then 2 else if (j =? S c)%nat then 3 else 0 in
  let J := [0%nat; 1%nat; 2%nat] in
  let Δ h j := delta 2 1 (head 1 h b_Q) (head_of 1 h W_K) (x j) in
  delta 2 2 b_Q W_K (x 0%nat) = 4 /\ delta 2 2 b_Q W_K (x 1%nat) = 3 /\ delta 2 2 b_Q W_K (x 2%nat) = 3 /\
  softmax J (Δ 0%nat) 0%nat < softmax J (Δ 0%nat) 1%nat /\
  softmax J (Δ 1%nat) 0%nat < softmax J (Δ 1%nat) 2%nat.
Proof.
  cbv zeta. unfold delta, vdot, vmul, head, head_of. simpl. repeat split; try ring;
  unfold softmax, Rdiv; (apply Rmult_lt_compat_r;
    [apply Rinv_0_lt_compat, sum_exp_pos; discriminate | apply exp_increasing; simpl; lra]).
Qed.
(*< gpt2.unsplit *)
