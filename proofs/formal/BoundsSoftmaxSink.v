(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Errors of the softmax with a sink, without dropping a second-order term; of 1 - alpha_s in its
   three forms; and of the row mass in bfloat16. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Summation.
From Coq Require Import Reals List Permutation ZArith Lia Lra.
From Flocq Require Import Core.
Import ListNotations.
Open Scope R_scope.

(* exp lies above its tangents, and below its chords from 0. *)
Lemma exp_tangent p x : exp p * (1 + (x - p)) <= exp x.
Proof.
  replace (exp x) with (exp p * exp (x - p)) by (rewrite <- exp_plus; f_equal; ring).
  apply Rmult_le_compat_l; [apply Rlt_le, exp_pos | apply exp_ineq1_le].
Qed.

Lemma exp_chord u w : 0 <= u <= 1 -> exp (u * w) <= 1 + u * (exp w - 1).
Proof.
  intros Hu. pose proof (exp_tangent (u * w) w) as A. pose proof (exp_tangent (u * w) 0) as B.
  rewrite exp_0 in B.
  pose proof (Rmult_le_compat_l u _ _ ltac:(lra) A).
  pose proof (Rmult_le_compat_l (1 - u) _ _ ltac:(lra) B). lra.
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [L | ->]; [apply Rlt_le, exp_increasing, L | lra]. Qed.

Lemma rounded_shift u t d : t <= 0 -> Rabs d <= u -> u * t <= t * d <= u * - t.
Proof.
  intros Ht Hd. assert (- u <= d <= u) by (unfold Rabs in Hd; destruct (Rcase_abs _) in Hd; lra).
  nra.
Qed.

(* Shifted logits t k <= 0, one of them 0: I holds the keys and the sink. *)
Section Shifted.
  Context {A : Type}.
  Variables (I : list A) (t : A -> R).
  Hypothesis t_le_0 : forall k, In k I -> t k <= 0.
  Hypothesis t_attained : exists k, In k I /\ t k = 0.

  Let Z := ∑ k ∈ I, exp (t k).
  Let N := INR (length I).
  Let a := softmax I t.

  Lemma Z_ge_1 : 1 <= Z.
  Proof.
    destruct t_attained as (k & Hk & E). rewrite <- exp_0, <- E.
    apply (Sum_term_le I (fun k => exp (t k))); [exact Hk | intros; apply Rlt_le, exp_pos].
  Qed.

  Lemma nonempty : I <> [].
  Proof. destruct t_attained as (k & Hk & _). destruct I; [contradiction | discriminate]. Qed.

  Lemma a_pos k : 0 < a k.
  Proof. apply Rdiv_lt_0_compat; [apply exp_pos | pose proof Z_ge_1; unfold Z in *; lra]. Qed.

  Lemma a_mass : ∑ k ∈ I, a k = 1.
  Proof. apply softmax_mass, nonempty. Qed.

  (* Sum a (e^-t / c - 1) = 0 for c = N / Z, the mean of e^-t. *)
  Lemma mean_growth : ∑ k ∈ I, a k * exp (- t k - ln (N / Z)) = 1.
  Proof.
    pose proof Z_ge_1. assert (0 < N) by (apply (lt_INR 0); pose proof nonempty; destruct I; simpl; [easy | lia]).
    rewrite (Sum_ext _ _ (fun _ => / N)).
    - rewrite Sum_const. fold N. field. lra.
    - intros k. unfold a, softmax. fold Z. unfold Rminus. rewrite exp_plus, !exp_Ropp, exp_ln.
      + pose proof (exp_pos (t k)). field. lra.
      + apply Rdiv_lt_0_compat; lra.
  Qed.

  Lemma ln_mean_le : ln (N / Z) <= ln N.
  Proof.
    pose proof Z_ge_1. assert (0 < N) by (apply (lt_INR 0); pose proof nonempty; destruct I; simpl; [easy | lia]).
    unfold Rdiv. rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; lra).
    assert (0 <= ln Z) by (rewrite <- ln_1; apply Rcomplements.ln_le; lra). lra.
  Qed.

  (* Sum_k a_k (m - z_k) = H(a) - (LSE - m) <= log(n + 1). *)
  Lemma entropy_piece :
    ∑ k ∈ I, a k * - t k = (∑ k ∈ I, a k * - ln (a k)) - ln Z /\
    ∑ k ∈ I, a k * - t k <= ln N.
  Proof.
    pose proof Z_ge_1. split.
    - rewrite (Sum_ext I (fun k => a k * - ln (a k)) (fun k => a k * - t k + a k * ln Z)).
      + rewrite Sum_plus, Sum_scal_r, a_mass. ring.
      + intros k. unfold a at 2, softmax. fold Z. unfold Rdiv.
        rewrite ln_mult, ln_exp, ln_Rinv; [ring | lra | apply exp_pos | apply Rinv_0_lt_compat; lra].
    - apply Rle_trans with (ln (N / Z)); [|apply ln_mean_le].
      assert (L : ∑ k ∈ I, a k * (1 + (- t k - ln (N / Z))) <= 1).
      { eapply Rle_trans; [|right; apply mean_growth]. apply Sum_le. intros k _.
        apply Rmult_le_compat_l; [apply Rlt_le, a_pos | apply exp_ineq1_le]. }
      rewrite (Sum_ext _ _ (fun k => a k * (1 - ln (N / Z)) + a k * - t k)) in L by (intros; ring).
      rewrite Sum_plus, Sum_scal_r, a_mass in L. lra.
  Qed.

  (* Rounding each t k moves the denominator by at most (n + 1)^u, exactly. *)
  Lemma moved_sum u (d : A -> R) : 0 <= u <= 1 -> (forall k, Rabs (d k) <= u) ->
    exp (- (u * ln N)) * Z <= ∑ k ∈ I, exp (t k * (1 + d k)) <= exp (u * ln N) * Z.
  Proof.
    intros Hu Hd. pose proof Z_ge_1.
    assert (E : ∑ k ∈ I, exp (t k * (1 + d k)) = (∑ k ∈ I, a k * exp (t k * d k)) * Z).
    { rewrite <- Sum_scal_r. apply Sum_ext. intros k. rewrite Rmult_plus_distr_l, exp_plus, Rmult_1_r.
      unfold a, softmax. fold Z. field. lra. }
    assert (D : forall k, In k I -> u * t k <= t k * d k <= u * - t k).
    { intros k Hk. apply rounded_shift; auto. }
    rewrite E. split; (apply Rmult_le_compat_r; [lra|]).
    - destruct entropy_piece as [_ P]. set (p := - (u * ln N)).
      apply Rle_trans with (∑ k ∈ I, a k * (exp p * (1 + (u * t k - p)))).
      + rewrite (Sum_ext _ _ (fun k => a k * (exp p * (1 - p)) + a k * - t k * - (exp p * u)))
          by (intros; ring).
        rewrite Sum_plus, !Sum_scal_r, a_mass. pose proof (exp_pos p).
        pose proof (Rmult_le_compat_l u _ _ ltac:(lra) P). unfold p in *.
        assert (0 <= exp (- (u * ln N)) * (u * ln N - u * ∑ k ∈ I, a k * - t k))
          by (apply Rmult_le_pos; lra). lra.
      + apply Sum_le. intros k Hk. apply Rmult_le_compat_l; [apply Rlt_le, a_pos|].
        eapply Rle_trans; [apply exp_tangent | apply exp_le, D, Hk].
    - set (c := ln (N / Z)).
      apply Rle_trans with (∑ k ∈ I, a k * (exp (u * c) * (1 + u * (exp (- t k - c) - 1)))).
      + apply Sum_le. intros k Hk. apply Rmult_le_compat_l; [apply Rlt_le, a_pos|].
        apply Rle_trans with (exp (u * c) * exp (u * (- t k - c))).
        * rewrite <- exp_plus. apply exp_le. pose proof (D k Hk). lra.
        * apply Rmult_le_compat_l; [apply Rlt_le, exp_pos | apply exp_chord, Hu].
      + rewrite (Sum_ext _ _ (fun k => a k * (exp (u * c) * (1 - u))
                                       + a k * exp (- t k - c) * (exp (u * c) * u))) by (intros; ring).
        rewrite Sum_plus, !Sum_scal_r, a_mass. unfold c at 2. rewrite mean_growth.
        replace (_ + _) with (exp (u * c)) by ring. apply exp_le, Rmult_le_compat_l, ln_mean_le. lra.
  Qed.
End Shifted.

Lemma quotient_bounds p P q Q r R' : 0 < p -> p <= q <= P -> 0 < r -> r <= R' <= Q ->
  p / Q <= q / R' <= P / r.
Proof.
  intros Hp Hq Hr HR. split; unfold Rdiv; apply Rmult_le_compat; try lra;
    try (apply Rlt_le, Rinv_0_lt_compat; lra); apply Rinv_le_contravar; lra.
Qed.

Lemma abs_between x y e : Rabs (x - y) <= e -> y - e <= x <= y + e.
Proof. intros H. unfold Rabs in H. destruct (Rcase_abs _) in H; lra. Qed.

(* The logits of keys and sink, shifted by their maximum. *)
Lemma row_le_0 {key} (J : list key) s b k :
  In k (with_extra J) -> cat s b k - row_max J s b <= 0.
Proof.
  intros Hk. destruct k as [j|]; simpl; [|pose proof (row_max_sink J s b); lra].
  apply in_app_or in Hk. destruct Hk as [Hk|[F|[]]]; [|discriminate F].
  apply in_map_iff in Hk. destruct Hk as (j' & E & Hj). injection E as ->.
  pose proof (row_max_key J s b j Hj). lra.
Qed.

Lemma row_attained {key} (J : list key) s b :
  exists k, In k (with_extra J) /\ cat s b k - row_max J s b = 0.
Proof.
  destruct (row_max_attained J s b) as [E | (j & Hj & E)]; rewrite E.
  - exists None. split; [apply in_or_app; simpl; auto | simpl; ring].
  - exists (Some j). split; [apply in_or_app; left; apply in_map, Hj | simpl; ring].
Qed.

Lemma length_extra {key} (J : list key) : length (with_extra J) = (length J + 1)%nat.
Proof. unfold with_extra. rewrite app_length, map_length. reflexivity. Qed.

Lemma softmax_shifted {A} (I : list A) (z : A -> R) m i : I <> [] ->
  softmax I z i = exp (z i - m) / ∑ k ∈ I, exp (z k - m).
Proof.
  intros HI. pose proof (sum_exp_pos I z HI). pose proof (exp_pos (- m)). unfold softmax, Rminus.
  rewrite (Sum_ext _ (fun k => exp (z k + - m)) (fun k => exp (z k) * exp (- m)))
    by (intros; apply exp_plus).
  rewrite Sum_scal_r, exp_plus. field. lra.
Qed.

Lemma gamma_small n u : 0 <= u -> INR n * u < 1 / 2 -> 0 <= gamma n u < 1.
Proof.
  intros Hu Hn. pose proof (pos_INR n). assert (0 <= INR n * u) by (apply Rmult_le_pos; lra).
  unfold gamma. split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]|].
  apply Rmult_lt_reg_r with (1 - INR n * u); [lra|]. field_simplify; lra.
Qed.

(* Positive terms, none of them rounded again, summed by any tree: the error is relative. *)
Lemma positive_sum {A} (I : list A) (e : A -> R) (n : nat) (fl : R -> R) (u : R) (t : tree) :
  0 <= u -> INR n * u < 1 / 2 -> (forall y, Rabs (fl y - y) <= u * Rabs y) ->
  (length I <= n + 1)%nat -> (forall k, 0 < e k) ->
  Permutation (terms t) (map (fun k => (e k, 1)) I) -> products_round t = 0%nat ->
  Sum I e * (1 - gamma n u) <= eval fl t <= Sum I e * (1 + gamma n u).
Proof.
  intros Hu Hn Hfl LI He P Hp.
  assert (F : forall y, Rabs (fl y - y) <= u * Rabs y + 0) by (intros; rewrite Rplus_0_r; apply Hfl).
  pose proof (tree_error fl u 0 Hu (Rle_refl 0) F t) as B. rewrite Rmult_0_r, Rplus_0_r in B.
  rewrite (dot_perm _ _ P), (absdot_perm _ _ P) in B. unfold dot, absdot in B.
  rewrite !Sum_map in B. cbn [fst snd] in B.
  rewrite (Sum_ext I (fun k => e k * 1) e), (Sum_ext I (fun k => Rabs (e k * 1)) e) in B.
  2:{ intros k. rewrite Rmult_1_r. apply Rabs_pos_eq, Rlt_le, He. }
  2:{ intros k. ring. }
  assert (D : (depth t <= n)%nat).
  { pose proof (depth_le t) as D. rewrite (Permutation_length P), map_length, Hp in D. lia. }
  pose proof (Rmult_le_compat_r u _ _ Hu (le_INR _ _ D)).
  assert (G : (1 + u) ^ depth t - 1 <= gamma n u).
  { eapply Rle_trans; [apply (pow_gamma u (depth t)); lra | apply gamma_mono; auto; lra]. }
  pose proof (Rmult_le_compat_r (Sum I e) _ _
    (Sum_nonneg I e (fun k _ => Rlt_le _ _ (He k))) G).
  apply abs_between in B. lra.
Qed.

(* What the engine computes: t' = (z - m)(1 + d), |d| <= u; e' = exp(t')(1 + x), |x| <= e; the
   denominator summed by any tree over the n + 1 terms; the quotient rounded once. [None] is the
   sink, [Some j] key j: by sink.concat-slice α is alpha_j or alpha_s. Then

     alpha' / alpha <= e^(u [(m - z_i) + log(n + 1)]) (1 + e)/(1 - e) (1 + u)/(1 - gamma_n)

   and as much below; to first order u [(m - z_i) + log(n + 1) + n + 1] + 2 e. The piece
   log(n + 1) bounds sum_k alpha_k (m - z_k) = H(alpha) - (LSE - m). *)
(*> bound.softmax-sink *)
Theorem bound_softmax_sink {key} (J : list key) (s : key -> R) (b : R)
  (fl : R -> R) (u e : R) (d x : option key -> R) (t : tree) (i : option key) :
  let I := with_extra J in let z := cat s b in let m := row_max J s b in
  let n := length J in
  0 <= u <= 1 -> INR n * u < 1 / 2 -> 0 <= e < 1 -> In i I ->
  (forall y, Rabs (fl y - y) <= u * Rabs y) ->
  (forall k, Rabs (d k) <= u) -> (forall k, Rabs (x k) <= e) ->
  let e' k := exp ((z k - m) * (1 + d k)) * (1 + x k) in
  Permutation (terms t) (map (fun k => (e' k, 1)) I) -> products_round t = 0%nat ->
  let α := softmax I z i in let α' := fl (e' i / eval fl t) in
  let G := u * ((m - z i) + ln (INR (n + 1))) in
  α * (exp (- G) * ((1 - e) / (1 + e)) * ((1 - u) / (1 + gamma n u))) <= α' <=
  α * (exp G * ((1 + e) / (1 - e)) * ((1 + u) / (1 - gamma n u))).
Proof.
  intros I z m n Hu Hn He Hi Hfl Hd Hx e' P Hp α α' G.
  set (tk := fun k => z k - m).
  pose proof (row_le_0 J s b) as T0. pose proof (row_attained J s b) as T1.
  fold I z m in T0, T1. fold tk in T0, T1.
  pose proof (length_extra J : length I = (n + 1)%nat) as LI.
  set (Z := ∑ k ∈ I, exp (tk k)). pose proof (Z_ge_1 I tk T1) as HZ. fold Z in HZ.
  set (L := ln (INR (n + 1))). set (S := Sum I e').
  pose proof (moved_sum I tk T0 T1 u d Hu Hd) as M. rewrite LI in M. fold L Z in M.
  (* the numerator *)
  assert (X : forall k, 1 - e <= 1 + x k <= 1 + e)
    by (intros k; specialize (Hx k); unfold Rabs in Hx; destruct (Rcase_abs _) in Hx; lra).
  assert (Num : exp (tk i) * exp (- (u * (m - z i))) * (1 - e) <= e' i <=
                exp (tk i) * exp (u * (m - z i)) * (1 + e)).
  { unfold e'. fold (tk i). rewrite <- !exp_plus.
    replace (m - z i) with (- tk i) by (unfold tk; ring).
    pose proof (X i). pose proof (rounded_shift u (tk i) (d i) (T0 i Hi) (Hd i)).
    split; apply Rmult_le_compat; try (apply Rlt_le, exp_pos); try lra; apply exp_le; lra. }
  (* the sum of the computed exponentials, and its rounded value *)
  assert (HS : exp (- (u * L)) * Z * (1 - e) <= S <= exp (u * L) * Z * (1 + e)).
  { split.
    - apply Rle_trans with ((∑ k ∈ I, exp (tk k * (1 + d k))) * (1 - e));
        [apply Rmult_le_compat_r; lra|]. rewrite <- Sum_scal_r. apply Sum_le. intros k _.
      apply Rmult_le_compat_l; [apply Rlt_le, exp_pos | apply X].
    - apply Rle_trans with ((∑ k ∈ I, exp (tk k * (1 + d k))) * (1 + e));
        [|apply Rmult_le_compat_r; lra]. rewrite <- Sum_scal_r. apply Sum_le. intros k _.
      apply Rmult_le_compat_l; [apply Rlt_le, exp_pos | apply X]. }
  pose proof (exp_pos (u * L)). pose proof (exp_pos (- (u * L))).
  assert (SP : 0 < S) by (apply Rlt_le_trans with (2 := proj1 HS);
    repeat apply Rmult_lt_0_compat; lra).
  pose proof (pos_INR n).
  pose proof (gamma_small n u (proj1 Hu) Hn) as G1.
  assert (ES : S * (1 - gamma n u) <= eval fl t <= S * (1 + gamma n u)).
  { apply (positive_sum I e' n fl u t); auto; try lra; [rewrite LI; lia|].
    intros k. unfold e'. pose proof (X k). apply Rmult_lt_0_compat; [apply exp_pos|]. lra. }
  (* the quotient, and its rounding *)
  set (lo := exp (tk i) * exp (- (u * (m - z i))) * (1 - e)) in *.
  set (hi := exp (tk i) * exp (u * (m - z i)) * (1 + e)) in *.
  assert (lo_pos : 0 < lo) by (repeat apply Rmult_lt_0_compat; try apply exp_pos; lra).
  set (den_lo := exp (- (u * L)) * Z * (1 - e) * (1 - gamma n u)).
  set (den_hi := exp (u * L) * Z * (1 + e) * (1 + gamma n u)).
  assert (den_pos : 0 < den_lo) by (repeat apply Rmult_lt_0_compat; lra).
  assert (Den : den_lo <= eval fl t <= den_hi).
  { split; [eapply Rle_trans; [|apply ES] | eapply Rle_trans; [apply ES|]];
      apply Rmult_le_compat_r; lra. }
  pose proof (quotient_bounds _ _ _ _ _ _ lo_pos Num den_pos Den) as Q.
  assert (QP : 0 < lo / den_hi) by (apply Rdiv_lt_0_compat; lra).
  pose proof (Hfl (e' i / eval fl t)) as R1. fold α' in R1.
  rewrite (Rabs_pos_eq (e' i / eval fl t)) in R1 by lra. apply abs_between in R1.
  (* what was to be shown, factor by factor *)
  assert (A : α = exp (tk i) / Z).
  { apply (softmax_shifted I z m i), (nonempty I tk T0 T1). }
  assert (EG : exp G = exp (u * (m - z i)) * exp (u * L)) by (rewrite <- exp_plus; f_equal; unfold G, L; ring).
  assert (EN : exp (- G) = exp (- (u * (m - z i))) * / exp (u * L))
    by (rewrite <- exp_Ropp, <- exp_plus; f_equal; unfold G, L; ring).
  assert (EL : exp (- (u * L)) = / exp (u * L)) by apply exp_Ropp.
  split.
  - apply Rle_trans with (lo / den_hi * (1 - u)).
    + right. unfold lo, den_hi. rewrite A, EN. field. lra.
    + apply Rle_trans with (e' i / eval fl t * (1 - u)); [apply Rmult_le_compat_r; lra | lra].
  - apply Rle_trans with (hi / den_lo * (1 + u)).
    + apply Rle_trans with (e' i / eval fl t * (1 + u)); [lra | apply Rmult_le_compat_r; lra].
    + right. unfold hi, den_lo. rewrite A, EG, EL. field. lra.
Qed.

(* The factors as one exponent: u [(m - z_i) + log(n + 1)] + B, with B to first order
   2 e + u + n u. *)
Theorem bound_softmax_sink_exponent (e u g : R) : 0 <= e < 1 -> 0 <= u < 1 -> 0 <= g < 1 ->
  let B := 2 * e / (1 - e) + u / (1 - u) + g / (1 - g) in
  (1 + e) / (1 - e) * ((1 + u) / (1 - g)) <= exp B /\
  exp (- B) <= (1 - e) / (1 + e) * ((1 - u) / (1 + g)).
Proof.
  intros He Hu Hg B.
  assert (P : forall x, 0 <= x < 1 -> 0 <= x / (1 - x) /\ x <= x / (1 - x)).
  { intros x Hx. split; [apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat]; lra|].
    apply Rmult_le_reg_r with (1 - x); [lra|]. field_simplify; nra. }
  assert (E1 : (1 + e) / (1 - e) <= exp (2 * e / (1 - e))).
  { replace ((1 + e) / (1 - e)) with (1 + 2 * e / (1 - e)) by (field; lra). apply exp_ineq1_le. }
  assert (E2 : 1 + u <= exp (u / (1 - u)) /\ / (1 - u) <= exp (u / (1 - u))).
  { pose proof (exp_ineq1_le (u / (1 - u))). pose proof (P u Hu).
    split; [lra|]. replace (/ (1 - u)) with (1 + u / (1 - u)) by (field; lra). lra. }
  assert (E3 : 1 + g <= exp (g / (1 - g)) /\ / (1 - g) <= exp (g / (1 - g))).
  { pose proof (exp_ineq1_le (g / (1 - g))). pose proof (P g Hg).
    split; [lra|]. replace (/ (1 - g)) with (1 + g / (1 - g)) by (field; lra). lra. }
  assert (I1 : 0 < / (1 - e) /\ 0 < / (1 - u) /\ 0 < / (1 - g))
    by (repeat split; apply Rinv_0_lt_compat; lra).
  unfold B. rewrite exp_Ropp, !exp_plus. split.
  - unfold Rdiv at 1 2. rewrite (Rmult_assoc (exp _)).
    apply Rmult_le_compat; [apply Rmult_le_pos; lra | apply Rmult_le_pos; lra | exact E1|].
    apply Rmult_le_compat; lra.
  - replace ((1 - e) / (1 + e) * ((1 - u) / (1 + g)))
      with (/ ((1 + e) / (1 - e) * / (1 - u) * (1 + g))) by (field; lra).
    apply Rinv_le_contravar.
    + repeat apply Rmult_lt_0_compat; lra.
    + repeat apply Rmult_le_compat; try lra; repeat apply Rmult_le_pos; lra.
Qed.

(* The same engine, as the interval that the judge evaluates: each numerator within 1 ± η of the
   real one, and a weight largest when its own numerator is largest and every other smallest. *)
Theorem bound_softmax_sink_interval {A} (i : A) (others : list A) (z d x : A -> R) (m : R)
  (fl : R -> R) (u e : R) (t : tree) :
  let n := length others in
  0 <= u < 1 -> INR n * u < 1 / 2 -> 0 <= e < 1 ->
  (forall y, Rabs (fl y - y) <= u * Rabs y) ->
  (forall k, Rabs (d k) <= u) -> (forall k, Rabs (x k) <= e) ->
  let η k := exp (Rabs (z k - m) * u) * (1 + e) - 1 in
  (forall k, η k < 1) ->
  let e' k := exp ((z k - m) * (1 + d k)) * (1 + x k) in
  let lo k := exp (z k - m) * (1 - η k) in
  let hi k := exp (z k - m) * (1 + η k) in
  Permutation (terms t) (map (fun k => (e' k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let α' := fl (e' i / eval fl t) in
  lo i / (lo i + Sum others hi) * ((1 - u) / (1 + gamma n u)) <= α' <=
  hi i / (hi i + Sum others lo) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n Hu Hn He Hfl Hd Hx η Hη e' lo hi P Hp α'.
  assert (K : forall k, 0 < lo k /\ lo k <= e' k <= hi k).
  { intros k. unfold lo, hi, e', η. specialize (Hd k). specialize (Hx k). specialize (Hη k).
    unfold η in Hη. set (a := Rabs (z k - m) * u) in *.
    replace ((z k - m) * (1 + d k)) with ((z k - m) + (z k - m) * d k) by ring. rewrite exp_plus.
    pose proof (exp_pos (z k - m)) as P0. set (E := exp (z k - m)) in *.
    assert (B : Rabs ((z k - m) * d k) <= a)
      by (unfold a; rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | exact Hd]).
    assert (- a <= (z k - m) * d k <= a) by (unfold Rabs in B; destruct (Rcase_abs _) in B; lra).
    assert (- e <= x k <= e) by (unfold Rabs in Hx; destruct (Rcase_abs _) in Hx; lra).
    pose proof (exp_le _ _ (proj1 H)) as L1. pose proof (exp_le _ _ (proj2 H)) as L2.
    pose proof (exp_pos ((z k - m) * d k)) as P1. pose proof (exp_pos a) as P2.
    assert (A1 : 1 <= exp a).
    { rewrite <- exp_0. apply exp_le. unfold a. apply Rmult_le_pos; [apply Rabs_pos | lra]. }
    rewrite exp_Ropp in L1. set (w := exp ((z k - m) * d k)) in *. set (G := exp a) in *.
    assert (V : 2 - G * (1 + e) <= / G * (1 - e)).
    { apply Rmult_le_reg_r with G; [lra|]. rewrite (Rmult_comm (/ G)), (Rmult_assoc (1 - e)), Rinv_l by lra.
      assert (0 <= (G - 1) * (G - 1) + e * ((G - 1) * (G + 1)))
        by (apply Rplus_le_le_0_compat; [apply Rle_0_sqr | apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]]).
      lra. }
    assert (W1 : / G * (1 - e) <= w * (1 + x k)).
    { apply Rmult_le_compat; try lra. apply Rlt_le, Rinv_0_lt_compat. lra. }
    assert (W2 : w * (1 + x k) <= G * (1 + e)) by (apply Rmult_le_compat; lra).
    split; [apply Rmult_lt_0_compat; lra|]. rewrite Rmult_assoc.
    split; apply Rmult_le_compat_l; lra. }
  pose proof (gamma_small n u (proj1 Hu) Hn) as G1.
  assert (ES : Sum (i :: others) e' * (1 - gamma n u) <= eval fl t
               <= Sum (i :: others) e' * (1 + gamma n u)).
  { apply (positive_sum _ e' n fl u t); auto; try lra; [simpl; unfold n; lia|].
    intros k. destruct (K k). lra. }
  cbn [Sum] in ES. set (r := Sum others e') in *.
  assert (R1 : Sum others lo <= r <= Sum others hi)
    by (split; apply Sum_le; intros k _; apply K).
  assert (R0 : 0 <= Sum others lo) by (apply Sum_nonneg; intros k _; apply Rlt_le, K).
  destruct (K i) as [Lp [Ll Lh]].
  (* x / (x + r) grows with x and falls with r *)
  assert (M : forall x1 x2 r1 r2, 0 < x1 <= x2 -> 0 <= r2 <= r1 -> x1 / (x1 + r1) <= x2 / (x2 + r2)).
  { intros x1 x2 r1 r2 H1 H2. apply Rmult_le_reg_r with ((x1 + r1) * (x2 + r2));
      [apply Rmult_lt_0_compat; lra|].
    replace (x1 / (x1 + r1) * ((x1 + r1) * (x2 + r2))) with (x1 * x2 + x1 * r2) by (field; lra).
    replace (x2 / (x2 + r2) * ((x1 + r1) * (x2 + r2))) with (x1 * x2 + x2 * r1) by (field; lra).
    assert (x1 * r2 <= x2 * r1) by (apply Rmult_le_compat; lra). lra. }
  set (q := e' i / (e' i + r)).
  assert (Q1 : lo i / (lo i + Sum others hi) <= q) by (apply M; lra).
  assert (Q2 : q <= hi i / (hi i + Sum others lo)) by (apply M; lra).
  assert (Q0 : 0 < q) by (apply Rdiv_lt_0_compat; lra).
  assert (SP : 0 < (e' i + r) * (1 - gamma n u)) by (apply Rmult_lt_0_compat; lra).
  pose proof (quotient_bounds (e' i) (e' i) (e' i) _ _ _ ltac:(lra) ltac:(lra) SP ES) as Q.
  replace (e' i / ((e' i + r) * (1 + gamma n u))) with (q * / (1 + gamma n u)) in Q
    by (unfold q; field; lra).
  replace (e' i / ((e' i + r) * (1 - gamma n u))) with (q * / (1 - gamma n u)) in Q
    by (unfold q; field; lra).
  assert (V1 : 0 < / (1 + gamma n u)) by (apply Rinv_0_lt_compat; lra).
  assert (V2 : 0 < / (1 - gamma n u)) by (apply Rinv_0_lt_compat; lra).
  assert (0 < q * / (1 + gamma n u)) by (apply Rmult_lt_0_compat; lra).
  pose proof (Hfl (e' i / eval fl t)) as F. fold α' in F.
  rewrite (Rabs_pos_eq (e' i / eval fl t)) in F by lra. apply abs_between in F. split.
  - apply Rle_trans with (q * / (1 + gamma n u) * (1 - u)).
    + unfold Rdiv at 2. rewrite (Rmult_comm (1 - u)), <- Rmult_assoc.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
    + apply Rle_trans with (e' i / eval fl t * (1 - u)); [apply Rmult_le_compat_r; lra | lra].
  - apply Rle_trans with (q * / (1 - gamma n u) * (1 + u)).
    + apply Rle_trans with (e' i / eval fl t * (1 + u)); [lra | apply Rmult_le_compat_r; lra].
    + unfold Rdiv at 2. rewrite (Rmult_comm (1 + u)), <- Rmult_assoc.
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
Qed.

(* The piece of the first-order bound. H is the entropy of keys and sink together. *)
Theorem bound_softmax_sink_entropy {key} (J : list key) (s : key -> R) (b : R) :
  let I := with_extra J in let z := cat s b in let m := row_max J s b in
  let a := softmax I z in
  ∑ k ∈ I, a k * (m - z k) = (∑ k ∈ I, a k * - ln (a k)) - (LSE_sink J s b - m) /\
  ∑ k ∈ I, a k * (m - z k) <= ln (INR (length J + 1)).
Proof.
  intros I z m a. set (t := fun k => z k - m).
  pose proof (row_le_0 J s b : forall k, In k I -> t k <= 0) as T0.
  pose proof (row_attained J s b : exists k, In k I /\ t k = 0) as T1.
  destruct (entropy_piece I t T0 T1) as [H1 H2]. rewrite (length_extra J : length I = _) in H2.
  assert (E : forall k, softmax I t k = a k)
    by (intros; symmetry; apply (softmax_shifted I z m k), (nonempty I t T0 T1)).
  assert (S : ∑ k ∈ I, a k * (m - z k) = ∑ k ∈ I, softmax I t k * - t k)
    by (apply Sum_ext; intros k; rewrite E; unfold t; ring).
  rewrite S. split; [|exact H2]. rewrite H1. f_equal.
  - apply Sum_ext. intros k. rewrite E. reflexivity.
  - pose proof (den_pos J s b) as D. pose proof (exp_pos m) as M.
    transitivity (ln ((exp b + ∑ j ∈ J, exp (s j)) * / exp m));
      [|rewrite ln_mult, ln_Rinv, ln_exp by (try apply Rinv_0_lt_compat; assumption); reflexivity].
    f_equal. unfold I, t, z. rewrite Sum_extra, Rplus_comm, Rmult_plus_distr_r, <- Sum_scal_r.
    f_equal; [|apply Sum_ext; intros j]; unfold Rminus; simpl; rewrite exp_plus, exp_Ropp; reflexivity.
Qed.
(*< bound.softmax-sink *)
