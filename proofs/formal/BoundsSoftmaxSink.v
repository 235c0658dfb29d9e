(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of the weights of the softmax with a sink (bound.softmax-sink): from intervals of the numerators, and
   in closed form with the maximum subtracted. No second-order term is dropped. Assumed: a relative error bound for
   each operation, and the underflow η of the quotient. Bounds.v continues with 1 - alpha_s, the row mass and the
   values. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Summation.
From Coq Require Import Reals List Permutation ZArith Lia Lra.
From Flocq Require Import Core.
Import ListNotations.
Open Scope R_scope.

(* exp lies above its tangents; between 0 and w it lies below its chord. *)
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

(* t k are the logits after the row's maximum is subtracted: all t k <= 0, and one is 0. I holds the keys and
   the sink. *)
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

  (* sum_k a_k (e^-t_k / c - 1) = 0 for c = N / Z, which is the mean of e^-t under the weights a. *)
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

  (* With t_k = z_k - m: sum_k a_k (m - z_k) = H(a) - (LSE - m) <= log(n + 1). *)
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

  (* Rounding every t k changes the denominator by at most the factor (n + 1)^u. This holds exactly, not only
     to first order. *)
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

(* The logits of the keys and the sink, minus their maximum. *)
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

(* A sum of exact positive terms, in any tree: its error is relative. *)
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

(* Each operation has its own error bound. Numerator e' k lies between lo k and hi k. The sum D' of the
   numerators has relative error g. The weight a' differs from the quotient by the relative error q and the
   underflow η. A weight is largest when its own numerator is largest and all others are smallest. i is a key
   or the sink, and the list [others] holds all the rest. *)
(*> bound.softmax-sink *)
Theorem bound_softmax_sink {A} (i : A) (others : list A) (e' lo hi : A -> R) (D' a' g q η : R) :
  let I := i :: others in 0 <= g < 1 -> 0 <= q <= 1 -> 0 < Sum I lo ->
  (forall k, In k I -> 0 <= lo k /\ lo k <= e' k <= hi k) ->
  Rabs (D' - Sum I e') <= g * Sum I e' -> Rabs (a' - e' i / D') <= q * (e' i / D') + η ->
  lo i / (lo i + Sum others hi) * ((1 - q) / (1 + g)) - η <= a' <=
  hi i / (hi i + Sum others lo) * ((1 + q) / (1 - g)) + η.
Proof.
  intros I Hg Hq HL K HD Ha. unfold I in *. cbn [Sum] in *.
  assert (R1 : Sum others lo <= Sum others e' <= Sum others hi)
    by (split; apply Sum_le; intros k Hk; apply K; right; exact Hk).
  assert (R0 : 0 <= Sum others lo) by (apply Sum_nonneg; intros k Hk; apply K; right; exact Hk).
  destruct (K i (or_introl eq_refl)) as [L0 [Ll Lh]]. set (r := Sum others e') in *.
  (* x / (x + r) grows with x and falls with r *)
  assert (M : forall x1 x2 r1 r2, 0 <= x1 <= x2 -> 0 <= r2 <= r1 -> 0 < x2 + r2 -> 0 < x1 + r1 ->
                x1 / (x1 + r1) <= x2 / (x2 + r2)).
  { intros x1 x2 r1 r2 H1 H2 P2 P1. apply Rmult_le_reg_r with ((x1 + r1) * (x2 + r2));
      [apply Rmult_lt_0_compat; lra|].
    replace (x1 / (x1 + r1) * ((x1 + r1) * (x2 + r2))) with (x1 * x2 + x1 * r2) by (field; lra).
    replace (x2 / (x2 + r2) * ((x1 + r1) * (x2 + r2))) with (x1 * x2 + x2 * r1) by (field; lra).
    assert (x1 * r2 <= x2 * r1) by (apply Rmult_le_compat; lra). lra. }
  assert (Q1 : lo i / (lo i + Sum others hi) <= e' i / (e' i + r)) by (apply M; lra).
  assert (Q2 : e' i / (e' i + r) <= hi i / (hi i + Sum others lo)) by (apply M; lra).
  set (w := e' i / (e' i + r)) in *.
  assert (W0 : 0 <= w) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]).
  apply abs_between in HD. assert (S0 : 0 < (e' i + r) * (1 - g)) by (apply Rmult_lt_0_compat; lra).
  assert (V : w * / (1 + g) <= e' i / D' <= w * / (1 - g)).
  { replace (w * / (1 + g)) with (e' i / ((e' i + r) * (1 + g))) by (unfold w; field; lra).
    replace (w * / (1 - g)) with (e' i / ((e' i + r) * (1 - g))) by (unfold w; field; lra).
    split; apply Rmult_le_compat_l; try lra; apply Rinv_le_contravar; lra. }
  assert (V1 : 0 < / (1 + g)) by (apply Rinv_0_lt_compat; lra).
  assert (V2 : 0 < / (1 - g)) by (apply Rinv_0_lt_compat; lra).
  apply Rcomplements.Rabs_le_between in Ha. set (x := e' i / D') in *. unfold Rdiv at 2 4. split.
  - apply Rle_trans with (x * (1 - q) - η); [|lra]. apply Rplus_le_compat_r.
    rewrite (Rmult_comm (1 - q)), <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    apply Rle_trans with (2 := proj1 V), Rmult_le_compat_r; lra.
  - apply Rle_trans with (x * (1 + q) + η); [lra|]. apply Rplus_le_compat_r.
    rewrite (Rmult_comm (1 + q)), <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    apply Rle_trans with (1 := proj2 V), Rmult_le_compat_r; lra.
Qed.

(* The interval of a numerator: t = z - m has relative error d, exp has relative error x, and h is what
   underflows. *)
Theorem bound_softmax_sink_numerator (t u e η d x h : R) : 0 <= e < 1 ->
  Rabs d <= u -> Rabs x <= e -> Rabs h <= η ->
  let η_t := exp (Rabs t * u) * (1 + e) - 1 in let e' := exp (t * (1 + d)) * (1 + x) + h in
  exp t * (1 - η_t) - η <= e' <= exp t * (1 + η_t) + η.
Proof.
  intros He Hd Hx Hh η_t e'. apply Rcomplements.Rabs_le_between in Hx.
  apply Rcomplements.Rabs_le_between in Hh. unfold e', η_t. set (a := Rabs t * u).
  replace (t * (1 + d)) with (t + t * d) by ring. rewrite exp_plus.
  pose proof (exp_pos t) as P0. set (E := exp t) in *.
  assert (B : Rabs (t * d) <= a)
    by (unfold a; rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | exact Hd]).
  apply Rcomplements.Rabs_le_between in B.
  pose proof (exp_le _ _ (proj1 B)) as L1. pose proof (exp_le _ _ (proj2 B)) as L2.
  pose proof (exp_pos (t * d)) as P1. pose proof (exp_pos a) as P2.
  assert (A1 : 1 <= exp a) by (rewrite <- exp_0; apply exp_le; lra).
  rewrite exp_Ropp in L1. set (w := exp (t * d)) in *. set (G := exp a) in *.
  assert (V : 2 - G * (1 + e) <= / G * (1 - e)).
  { apply Rmult_le_reg_r with G; [lra|]. rewrite (Rmult_comm (/ G)), (Rmult_assoc (1 - e)), Rinv_l by lra.
    assert (0 <= (G - 1) * (G - 1) + e * ((G - 1) * (G + 1)))
      by (apply Rplus_le_le_0_compat; [apply Rle_0_sqr | apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]]).
    lra. }
  assert (W1 : / G * (1 - e) <= w * (1 + x)).
  { apply Rmult_le_compat; try lra. apply Rlt_le, Rinv_0_lt_compat. lra. }
  assert (W2 : w * (1 + x) <= G * (1 + e)) by (apply Rmult_le_compat; lra).
  rewrite Rmult_assoc. split.
  - apply Rle_trans with (E * (w * (1 + x)) - η); [|lra]. apply Rplus_le_compat_r.
    apply Rmult_le_compat_l; lra.
  - apply Rle_trans with (E * (w * (1 + x)) + η); [lra|]. apply Rplus_le_compat_r.
    apply Rmult_le_compat_l; lra.
Qed.

(* In closed form: t' = (z - m)(1 + d) with |d| <= u; e' = exp(t')(1 + x) with |x| <= e; the denominator has
   relative error g and the quotient q. [None] is the sink and [Some j] is key j, so by sink.concat-slice α is
   alpha_j or alpha_s. To first order the weight has the relative error u [(m - z_i) + log(n + 1)] + 2 e
   + g + q. The term log(n + 1) bounds sum_k alpha_k (m - z_k) = H(alpha) - (LSE - m). *)
Theorem bound_softmax_sink_closed {key} (J : list key) (s : key -> R) (b : R)
  (u e g q : R) (d x : option key -> R) (i : option key) (D' α' : R) :
  let I := with_extra J in let z := cat s b in let m := row_max J s b in
  let n := length J in
  0 <= u <= 1 -> 0 <= e < 1 -> 0 <= g < 1 -> 0 <= q <= 1 -> In i I ->
  (forall k, Rabs (d k) <= u) -> (forall k, Rabs (x k) <= e) ->
  let e' k := exp ((z k - m) * (1 + d k)) * (1 + x k) in
  Rabs (D' - Sum I e') <= g * Sum I e' -> Rabs (α' - e' i / D') <= q * (e' i / D') ->
  let α := softmax I z i in let G := u * ((m - z i) + ln (INR (n + 1))) in
  α * (exp (- G) * ((1 - e) / (1 + e)) * ((1 - q) / (1 + g))) <= α' <=
  α * (exp G * ((1 + e) / (1 - e)) * ((1 + q) / (1 - g))).
Proof.
  intros I z m n Hu He Hg Hq Hi Hd Hx e' HD HA α G.
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
  assert (ES : S * (1 - g) <= D' <= S * (1 + g)) by (apply abs_between in HD; fold S in HD; lra).
  (* the quotient, and its rounding *)
  set (lo := exp (tk i) * exp (- (u * (m - z i))) * (1 - e)) in *.
  set (hi := exp (tk i) * exp (u * (m - z i)) * (1 + e)) in *.
  assert (lo_pos : 0 < lo) by (repeat apply Rmult_lt_0_compat; try apply exp_pos; lra).
  set (den_lo := exp (- (u * L)) * Z * (1 - e) * (1 - g)).
  set (den_hi := exp (u * L) * Z * (1 + e) * (1 + g)).
  assert (den_pos : 0 < den_lo) by (repeat apply Rmult_lt_0_compat; lra).
  assert (Den : den_lo <= D' <= den_hi).
  { split; [eapply Rle_trans; [|apply ES] | eapply Rle_trans; [apply ES|]];
      apply Rmult_le_compat_r; lra. }
  pose proof (quotient_bounds _ _ _ _ _ _ lo_pos Num den_pos Den) as Q.
  assert (QP : 0 < lo / den_hi) by (apply Rdiv_lt_0_compat; lra).
  pose proof HA as R1. apply abs_between in R1.
  (* the two sides of the claim, factor by factor *)
  assert (A : α = exp (tk i) / Z).
  { apply (softmax_shifted I z m i), (nonempty I tk T0 T1). }
  assert (EG : exp G = exp (u * (m - z i)) * exp (u * L)) by (rewrite <- exp_plus; f_equal; unfold G, L; ring).
  assert (EN : exp (- G) = exp (- (u * (m - z i))) * / exp (u * L))
    by (rewrite <- exp_Ropp, <- exp_plus; f_equal; unfold G, L; ring).
  assert (EL : exp (- (u * L)) = / exp (u * L)) by apply exp_Ropp.
  split.
  - apply Rle_trans with (lo / den_hi * (1 - q)).
    + right. unfold lo, den_hi. rewrite A, EN. field. lra.
    + apply Rle_trans with (e' i / D' * (1 - q)); [apply Rmult_le_compat_r; lra | lra].
  - apply Rle_trans with (hi / den_lo * (1 + q)).
    + apply Rle_trans with (e' i / D' * (1 + q)); [lra | apply Rmult_le_compat_r; lra].
    + right. unfold hi, den_lo. rewrite A, EG, EL. field. lra.
Qed.

(* The factors of e, q and g as one exponent B: the whole exponent is u [(m - z_i) + log(n + 1)] + B, and B is
   2 e + q + g to first order. *)
Theorem bound_softmax_sink_exponent (e q g : R) : 0 <= e < 1 -> 0 <= q < 1 -> 0 <= g < 1 ->
  let B := 2 * e / (1 - e) + q / (1 - q) + g / (1 - g) in
  (1 + e) / (1 - e) * ((1 + q) / (1 - g)) <= exp B /\
  exp (- B) <= (1 - e) / (1 + e) * ((1 - q) / (1 + g)).
Proof.
  intros He Hq Hg B.
  assert (P : forall x, 0 <= x < 1 -> 0 <= x / (1 - x) /\ x <= x / (1 - x)).
  { intros x Hx. split; [apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat]; lra|].
    apply Rmult_le_reg_r with (1 - x); [lra|]. field_simplify; nra. }
  assert (E1 : (1 + e) / (1 - e) <= exp (2 * e / (1 - e))).
  { replace ((1 + e) / (1 - e)) with (1 + 2 * e / (1 - e)) by (field; lra). apply exp_ineq1_le. }
  assert (E2 : 1 + q <= exp (q / (1 - q)) /\ / (1 - q) <= exp (q / (1 - q))).
  { pose proof (exp_ineq1_le (q / (1 - q))). pose proof (P q Hq).
    split; [lra|]. replace (/ (1 - q)) with (1 + q / (1 - q)) by (field; lra). lra. }
  assert (E3 : 1 + g <= exp (g / (1 - g)) /\ / (1 - g) <= exp (g / (1 - g))).
  { pose proof (exp_ineq1_le (g / (1 - g))). pose proof (P g Hg).
    split; [lra|]. replace (/ (1 - g)) with (1 + g / (1 - g)) by (field; lra). lra. }
  assert (I1 : 0 < / (1 - e) /\ 0 < / (1 - q) /\ 0 < / (1 - g))
    by (repeat split; apply Rinv_0_lt_compat; lra).
  unfold B. rewrite exp_Ropp, !exp_plus. split.
  - unfold Rdiv at 1 2. rewrite (Rmult_assoc (exp _)).
    apply Rmult_le_compat; [apply Rmult_le_pos; lra | apply Rmult_le_pos; lra | exact E1|].
    apply Rmult_le_compat; lra.
  - replace ((1 - e) / (1 + e) * ((1 - q) / (1 + g)))
      with (/ ((1 + e) / (1 - e) * / (1 - q) * (1 + g))) by (field; lra).
    apply Rinv_le_contravar.
    + repeat apply Rmult_lt_0_compat; lra.
    + repeat apply Rmult_le_compat; try lra; repeat apply Rmult_le_pos; lra.
Qed.

(* The term log(n + 1) of the first-order error. H is the entropy of the weights of the keys and the sink
   together. *)
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
