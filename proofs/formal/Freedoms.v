(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds where an engine rounds at other places than the definition, or uses a function with another error:
   bound.norm-rounded, bound.exp-growing, bound.quotient, bound.form-running-angle, bound.form-scaled-first,
   bound.unnormalised, bound.unrounded. No second-order term is dropped. Assumed: for each operation a bound of its relative error (such as
   v) and of its absolute error by underflow (such as ηv). *)

From Sinkproof Require Import Sums Nodes Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* ---- a norm rounded before its weight ---- *)

(* y = x r w, where r is the reciprocal square root of the norm. The engine's r' has relative error t. The
   product x r' has errors v and ηv, its rounding to the narrower format has q and ηq, and the product with
   the weight w has z and ηz. *)
(*> bound.norm-rounded *)
Theorem bound_norm_rounded (x w r r' n' h' y' t v q z ηv ηq ηz : R) :
  0 <= t -> 0 <= v -> 0 <= q -> 0 <= z -> Rabs (r' - r) <= t * Rabs r ->
  Rabs (n' - x * r') <= v * Rabs (x * r') + ηv -> Rabs (h' - n') <= q * Rabs n' + ηq ->
  Rabs (y' - h' * w) <= z * Rabs (h' * w) + ηz ->
  let y := x * r * w in
  Rabs (y' - y) <= ((1 + t) * (1 + v) * (1 + q) * (1 + z) - 1) * Rabs y
                   + (1 + z) * ((1 + q) * ηv + ηq) * Rabs w + ηz.
Proof.
  intros Ht Hv Hq Hz HR HN HH HY y.
  assert (E1 : Rabs (x * r' - x * r) <= t * Rabs (x * r)).
  { replace (x * r' - x * r) with (x * (r' - r)) by ring. rewrite !Rabs_mult.
    pose proof (Rmult_le_compat_l (Rabs x) _ _ (Rabs_pos x) HR). lra. }
  pose proof (operation_step _ _ _ _ _ v ηv Hv HN (Rle_refl _) E1) as E2.
  pose proof (operation_step _ _ _ _ _ q ηq Hq HH (Rle_refl _) E2) as E3.
  set (N := Rabs (x * r)) in *.
  assert (E4 : Rabs (h' * w - y) <=
    ((1 + q) * ((1 + v) * (t * N) + v * N + ηv) + q * N + ηq) * Rabs w).
  { unfold y. replace (h' * w - x * r * w) with ((h' - x * r) * w) by ring. rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos | exact E3]. }
  pose proof (operation_step _ _ _ _ _ z ηz Hz HY (Rle_refl _) E4) as E5.
  assert (Ey : Rabs y = N * Rabs w) by (unfold y, N; apply Rabs_mult).
  rewrite Ey in *. eapply Rle_trans; [exact E5|]. right. ring.
Qed.
(*< bound.norm-rounded *)

(* ---- an exponential whose error grows with its argument ---- *)

Lemma exp_growing_lower a b X x : 0 <= a -> 0 <= b -> a + b * X < 1 -> 0 <= x <= X ->
  (1 - a) * exp (- (b / (1 - a - b * X) * x)) <= 1 - a - b * x.
Proof.
  intros Ha Hb Hc [Hx HX]. pose proof (Rmult_le_compat_l b _ _ Hb HX) as H1.
  assert (D : 0 < 1 - a - b * X) by lra.
  set (G := b / (1 - a - b * X) * x).
  assert (bx : 0 <= b * x) by (apply Rmult_le_pos; lra).
  assert (G1 : b * x <= G * (1 - a - b * x)).
  { assert (E : b * x = G * (1 - a - b * X)) by (unfold G; field; lra).
    assert (0 <= G) by (unfold G; apply Rmult_le_pos; [|lra]; apply Rmult_le_pos;
      [lra | apply Rlt_le, Rinv_0_lt_compat, D]).
    rewrite E at 1. apply Rmult_le_compat_l; lra. }
  pose proof (exp_ineq1_le G) as I. pose proof (exp_pos G) as P. rewrite exp_Ropp.
  apply Rmult_le_reg_r with (exp G); [exact P|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_trans with ((1 - a - b * x) * (1 + G)); [lra|].
  apply Rmult_le_compat_l; lra.
Qed.

Lemma exp_growing_upper a b X x : 0 <= a -> 0 <= b -> a + b * X < 1 -> 0 <= x <= X ->
  1 + a + b * x <= (1 + a) * exp (b / (1 - a - b * X) * x).
Proof.
  intros Ha Hb Hc [Hx HX]. pose proof (Rmult_le_pos _ _ Hb Hx) as bx.
  assert (bX : 0 <= b * X) by (apply Rmult_le_pos; lra).
  assert (B : b <= b / (1 - a - b * X)).
  { apply Rmult_le_reg_r with (1 - a - b * X); [lra|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. nra. }
  pose proof (exp_ineq1_le (b / (1 - a - b * X) * x)) as I.
  pose proof (Rmult_le_compat_r x _ _ Hx B). nra.
Qed.

(* An exponential with relative error a + b |x|: a constant, and an error of the exponent that is proportional
   to the argument. *)
(*> bound.exp-growing *)
Theorem bound_exp_growing (a b X x y : R) :
  0 <= a -> 0 <= b -> a + b * X < 1 -> Rabs x <= X ->
  Rabs (y - exp x) <= (a + b * Rabs x) * exp x ->
  let G := b / (1 - a - b * X) * Rabs x in
  (1 - a) * exp (- G) * exp x <= y <= (1 + a) * exp G * exp x.
Proof.
  intros Ha Hb Hc Hx Hy G. pose proof (Rabs_pos x) as X0. pose proof (exp_pos x) as P.
  pose proof (exp_growing_lower a b X (Rabs x) Ha Hb Hc (conj X0 Hx)) as L.
  pose proof (exp_growing_upper a b X (Rabs x) Ha Hb Hc (conj X0 Hx)) as U. fold G in L, U.
  apply abs_between in Hy. pose proof (Rmult_le_compat_r _ _ _ (Rlt_le _ _ P) L).
  pose proof (Rmult_le_compat_r _ _ _ (Rlt_le _ _ P) U). lra.
Qed.

(* A product of such exponentials, for instance a numerator and its rescalings. The parts b |x| add up to the
   part of one exponential whose argument is as large as all arguments together. *)
Theorem bound_exp_growing_chain (a b X : R) (l : list (R * R)) :
  0 <= a -> 0 <= b -> a + b * X < 1 ->
  (forall x y, In (x, y) l -> Rabs x <= X /\ Rabs (y - exp x) <= (a + b * Rabs x) * exp x) ->
  let c := b / (1 - a - b * X) in
  let n := length l in
  let G := c * ∑ p ∈ l, Rabs (fst p) in
  let product := fold_right (fun p t => snd p * t) 1 l in
  let true_product := exp (∑ p ∈ l, fst p) in
  0 <= product /\
  (1 - a) ^ n * exp (- G) * true_product <= product <= (1 + a) ^ n * exp G * true_product.
Proof.
  intros Ha Hb Hc. induction l as [|[x y] l IH]; intros Hl c n G product true_product.
  - unfold n, G, product, true_product. simpl. rewrite Rmult_0_r, Ropp_0, exp_0. lra.
  - destruct (Hl x y (or_introl eq_refl)) as [Hx Hy].
    pose proof (bound_exp_growing a b X x y Ha Hb Hc Hx Hy) as B. cbv zeta in B. fold c in B.
    specialize (IH (fun x y H => Hl x y (or_intror H))). cbv zeta in IH. fold c in IH.
    set (S := ∑ p ∈ l, Rabs (fst p)) in *. set (T := ∑ p ∈ l, fst p) in *.
    set (t := fold_right (fun p t => snd p * t) 1 l) in *. destruct IH as (t0 & tl & tu).
    assert (a1 : a < 1).
    { pose proof (Rabs_pos x). assert (0 <= b * X) by (apply Rmult_le_pos; lra). lra. }
    assert (EG : G = c * Rabs x + c * S) by (unfold G, S; simpl; ring).
    assert (ET : true_product = exp x * exp T) by (unfold true_product, T; simpl; apply exp_plus).
    pose proof (exp_pos x) as P1. pose proof (exp_pos T) as P2.
    pose proof (exp_pos (- (c * Rabs x))) as P3. pose proof (exp_pos (- (c * S))) as P4.
    pose proof (exp_pos (c * Rabs x)) as P5. pose proof (exp_pos (c * S)) as P6.
    pose proof (pow_le (1 - a) (length l) ltac:(lra)) as P7.
    pose proof (pow_le (1 + a) (length l) ltac:(lra)) as P8.
    assert (L0 : 0 <= (1 - a) * exp (- (c * Rabs x)) * exp x)
      by (repeat apply Rmult_le_pos; lra).
    assert (L1 : 0 <= (1 - a) ^ length l * exp (- (c * S)) * exp T)
      by (repeat apply Rmult_le_pos; lra).
    assert (Y0 : 0 <= y) by lra. change product with (y * t).
    assert (EN : n = Datatypes.S (length l)) by reflexivity.
    rewrite EN, ET, EG. cbn [pow]. rewrite Ropp_plus_distr, !exp_plus. split; [|split].
    + apply Rmult_le_pos; assumption.
    + replace (_ * _) with ((1 - a) * exp (- (c * Rabs x)) * exp x *
        ((1 - a) ^ length l * exp (- (c * S)) * exp T)) by ring.
      apply Rmult_le_compat; lra.
    + replace ((1 + a) * _ * _ * _) with ((1 + a) * exp (c * Rabs x) * exp x *
        ((1 + a) ^ length l * exp (c * S) * exp T)) by ring.
      apply Rmult_le_compat; lra.
Qed.
(*< bound.exp-growing *)

(* ---- a quotient with an error of its own ---- *)

(* a / b by a division with relative error D; or the product of a, with relative error u, and a reciprocal of b
   with relative error R. η is what underflows. *)
(*> bound.quotient *)
Theorem bound_quotient (a b y D R u η : R) :
  0 <= D -> 0 <= R -> 0 <= u ->
  Rabs (y - a / b) <= D * Rabs (a / b) + η \/
  (exists r, Rabs (r - / b) <= R * Rabs (/ b) /\ Rabs (y - a * r) <= u * Rabs (a * r) + η) ->
  let Q := Rmax D ((1 + R) * (1 + u) - 1) in Rabs (y - a / b) <= Q * Rabs (a / b) + η.
Proof.
  intros HD HR Hu H Q. unfold Q. pose proof (Rabs_pos (a / b)) as P.
  destruct H as [H | (r & Hr & Hy)].
  - pose proof (Rmult_le_compat_r _ _ _ P (Rmax_l D ((1 + R) * (1 + u) - 1))). lra.
  - assert (E : Rabs (a * r - a / b) <= R * Rabs (a / b)).
    { unfold Rdiv. rewrite <- Rmult_minus_distr_l, !Rabs_mult.
      pose proof (Rmult_le_compat_l (Rabs a) _ _ (Rabs_pos a) Hr). lra. }
    pose proof (operation_step _ _ _ _ _ u η Hu Hy (Rle_refl _) E) as B.
    pose proof (Rmult_le_compat_r _ _ _ P (Rmax_r D ((1 + R) * (1 + u) - 1))). lra.
Qed.

(* Several quotients, each a factor with relative error Q, and other roundings, a factor P with relative error
   g. *)
Theorem bound_quotient_chain (P g Q : R) (l : list R) :
  0 <= g -> 0 <= Q -> Rabs (P - 1) <= g -> (forall f, In f l -> Rabs (f - 1) <= Q) ->
  let n := length l in Rabs (fold_right Rmult P l - 1) <= (1 + g) * (1 + Q) ^ n - 1.
Proof.
  intros Hg HQ HP. induction l as [|f l IH]; intros Hl n; unfold n; cbn [length fold_right pow].
  - lra.
  - specialize (IH (fun x H => Hl x (or_intror H))). cbv zeta in IH.
    pose proof (Hl f (or_introl eq_refl)) as Hf. set (t := fold_right Rmult P l) in *.
    set (B := (1 + g) * (1 + Q) ^ length l) in *.
    replace (f * t - 1) with ((f - 1) + f * (t - 1)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
    assert (F : Rabs f <= 1 + Q).
    { replace f with (1 + (f - 1)) by ring. pose proof (Rabs_triang 1 (f - 1)).
      rewrite Rabs_R1 in H. lra. }
    pose proof (Rmult_le_compat _ _ _ _ (Rabs_pos f) (Rabs_pos (t - 1)) F IH).
    replace ((1 + g) * ((1 + Q) * (1 + Q) ^ length l)) with ((1 + Q) * B) by (unfold B; ring). lra.
Qed.
(*< bound.quotient *)

(* ---- angles by a running product ---- *)

(* The running product n, n s, (n s) s, ...; each product is rounded. *)
Fixpoint running (fl : R -> R) (s n : R) (i : nat) : R :=
  match i with
  | O => n
  | S i => fl (running fl s n i * s)
  end.

(* The error grows with the index i of the pair: each product adds the error e of the ratio and its own
   rounding. *)
(*> bound.form-running-angle *)
Theorem bound_form_running_angle (fl : R -> R) (s s' n e u : R) (i : nat) :
  0 <= u -> 0 <= e -> 0 <= n -> 0 <= s -> (forall x, Rabs (fl x - x) <= u * Rabs x) ->
  Rabs (s' - s) <= e * s ->
  Rabs (running fl s' n i - n * s ^ i) <= (((1 + e) * (1 + u)) ^ i - 1) * (n * s ^ i).
Proof.
  intros Hu He Hn Hs Hfl Hs'. induction i as [|i IH]; cbn [running pow].
  - rewrite Rmult_1_r, Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - set (p := running fl s' n i) in *. set (t := n * s ^ i) in *.
    assert (t0 : 0 <= t) by (apply Rmult_le_pos; [exact Hn | apply pow_le, Hs]).
    set (g := ((1 + e) * (1 + u)) ^ i) in *.
    assert (g1 : 1 <= g) by (apply pow_R1_Rle; nra).
    assert (Hp : Rabs p <= g * t).
    { replace p with (t + (p - t)) by ring. pose proof (Rabs_triang t (p - t)).
      rewrite (Rabs_pos_eq t) in H by exact t0. lra. }
    assert (E : Rabs (p * s' - t * s) <= (g * (1 + e) - 1) * (t * s)).
    { replace (p * s' - t * s) with ((p - t) * s + p * (s' - s)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, (Rabs_pos_eq s) by exact Hs.
      pose proof (Rmult_le_compat_r s _ _ Hs IH).
      pose proof (Rmult_le_compat _ _ _ _ (Rabs_pos p) (Rabs_pos _) Hp Hs'). lra. }
    assert (F : Rabs (fl (p * s') - p * s') <= u * Rabs (p * s') + 0) by (rewrite Rplus_0_r; apply Hfl).
    assert (ts : 0 <= t * s) by (apply Rmult_le_pos; assumption).
    pose proof (operation_step _ _ (t * s) (t * s) _ u 0 Hu F
      ltac:(rewrite Rabs_pos_eq; lra) E) as B.
    replace (n * (s * s ^ i)) with (t * s) by (unfold t; ring).
    eapply Rle_trans; [exact B|]. right. ring.
Qed.

(* The ends of the interval: under a monotone rounding, a larger ratio gives a larger product. *)
Theorem bound_form_running_angle_ends (fl : R -> R) (s s1 s2 n : R) (i : nat) :
  (forall x y, x <= y -> fl x <= fl y) -> fl 0 = 0 -> 0 <= n -> 0 <= s1 -> s1 <= s <= s2 ->
  running fl s1 n i <= running fl s n i <= running fl s2 n i.
Proof.
  intros M Z Hn H1 H2.
  assert (P : forall r, 0 <= r -> 0 <= running fl r n i).
  { intros r Hr. induction i as [|i' IH]; cbn [running]; [exact Hn|]. rewrite <- Z. apply M.
    apply Rmult_le_pos; [exact IH | exact Hr]. }
  assert (Q : forall r r', 0 <= r -> r <= r' -> running fl r n i <= running fl r' n i).
  { clear P. intros r r' Hr L. assert (P : forall j, 0 <= running fl r n j).
    { induction j as [|j IH]; cbn [running]; [exact Hn|]. rewrite <- Z. apply M, Rmult_le_pos; assumption. }
    induction i as [|i' IH]; cbn [running]; [apply Rle_refl|]. apply M.
    apply Rmult_le_compat; [apply P | exact Hr | exact IH | exact L]. }
  split; apply Q; lra.
Qed.
(*< bound.form-running-angle *)

(* ---- the concentration applied before the rotation ---- *)

(* The pair a, b is first multiplied by the concentration γ; each product has errors q and η. The table is
   within Ec of cos φ and Es of sin φ; bound.rope, with concentration 1, bounds both. The operations of each
   of the two sums have their own error bounds. *)
(*> bound.form-scaled-first *)
Theorem bound_form_scaled_first (a b γ φ a' b' c' s' q η Ec Es : R) (t : nodes) :
  0 <= q -> 0 <= η -> honest t -> Permutation (products t) [(a', c'); (- b', s')] ->
  Rabs (a' - γ * a) <= q * Rabs (γ * a) + η -> Rabs (b' - γ * b) <= q * Rabs (γ * b) + η ->
  Rabs (c' - cos φ) <= Ec -> Rabs (s' - sin φ) <= Es ->
  let Ea := q * Rabs (γ * a) + η in let Eb := q * Rabs (γ * b) + η in
  Rabs (value t - γ * (a * cos φ - b * sin φ)) <=
    (growth t - 1) * (Rabs (a' * c') + Rabs (b' * s')) + Rabs a' * Ec + Rabs b' * Es
    + Ea * Rabs (cos φ) + Eb * Rabs (sin φ) + underflow t.
Proof.
  intros Hq Hη Ht P Ha Hb Hc Hs Ea Eb. unfold Ea, Eb. destruct (nodes_error t Ht) as [_ E].
  unfold sum_sizes, sum_products in E.
  rewrite (Sum_perm _ _ _ P), (Sum_perm (products t) _ _ P) in E. cbn in E. rewrite !Rplus_0_r in E.
  replace (Rabs (- b' * s')) with (Rabs (b' * s')) in E
    by (rewrite <- (Rabs_Ropp (b' * s')); f_equal; ring).
  replace (value t - γ * (a * cos φ - b * sin φ)) with
    ((value t - (a' * c' + - b' * s')) + (a' * (c' - cos φ) + (- b') * (s' - sin φ)
     + ((a' - γ * a) * cos φ + (- (b' - γ * b)) * sin φ))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (T : Rabs (a' * (c' - cos φ) + (- b') * (s' - sin φ)
      + ((a' - γ * a) * cos φ + (- (b' - γ * b)) * sin φ)) <=
    Rabs a' * Ec + Rabs b' * Es + (q * Rabs (γ * a) + η) * Rabs (cos φ)
    + (q * Rabs (γ * b) + η) * Rabs (sin φ)).
  { eapply Rle_trans; [apply Rabs_triang|].
    pose proof (Rabs_triang (a' * (c' - cos φ)) ((- b') * (s' - sin φ))) as T1.
    pose proof (Rabs_triang ((a' - γ * a) * cos φ) ((- (b' - γ * b)) * sin φ)) as T2.
    rewrite !Rabs_mult, Rabs_Ropp in T1. rewrite !Rabs_mult, Rabs_Ropp in T2.
    pose proof (Rmult_le_compat_l _ _ _ (Rabs_pos a') Hc).
    pose proof (Rmult_le_compat_l _ _ _ (Rabs_pos b') Hs).
    pose proof (Rmult_le_compat_r _ _ _ (Rabs_pos (cos φ)) Ha).
    pose proof (Rmult_le_compat_r _ _ _ (Rabs_pos (sin φ)) Hb). lra. }
  lra.
Qed.
(*< bound.form-scaled-first *)

(* ---- exponentials rounded before they are multiplied by the values ---- *)

(* Exponential e j lies in [lo j, hi j], and their computed sum S' has relative error g. k is one of the
   exponentials as it was rounded; it is divided by the sum with errors r and η. *)
(*> bound.unnormalised *)
Theorem bound_unnormalised {A} (I : list A) (e lo hi : A -> R) (k kl kh S' w g r η : R) :
  (forall j, 0 <= lo j <= e j /\ e j <= hi j) -> 0 < (∑ j ∈ I, lo j) ->
  0 <= g < 1 -> 0 <= r <= 1 -> 0 <= kl <= k -> k <= kh ->
  Rabs (S' - (∑ j ∈ I, e j)) <= g * (∑ j ∈ I, e j) -> Rabs (w - k / S') <= r * (k / S') + η ->
  kl / (∑ j ∈ I, hi j) * ((1 - r) / (1 + g)) - η <= w <=
  kh / (∑ j ∈ I, lo j) * ((1 + r) / (1 - g)) + η.
Proof.
  intros He HL Hg Hr Hk Hk' HS Hw.
  set (L := ∑ j ∈ I, lo j) in *. set (H := ∑ j ∈ I, hi j). set (E := ∑ j ∈ I, e j) in *.
  assert (LE : L <= E) by (apply Sum_le; intros j _; destruct (He j); lra).
  assert (EH : E <= H) by (apply Sum_le; intros j _; destruct (He j); lra).
  apply abs_between in HS. apply abs_between in Hw.
  assert (S0 : L * (1 - g) <= S' <= H * (1 + g)) by nra.
  assert (D1 : 0 < L * (1 - g)) by (apply Rmult_lt_0_compat; lra).
  assert (D2 : 0 < H * (1 + g)) by (apply Rmult_lt_0_compat; lra).
  assert (Q1 : kl / (H * (1 + g)) <= k / S').
  { unfold Rdiv. apply Rmult_le_compat; try lra; [apply Rlt_le, Rinv_0_lt_compat, D2|].
    apply Rinv_le_contravar; lra. }
  assert (Q2 : k / S' <= kh / (L * (1 - g))).
  { unfold Rdiv. apply Rmult_le_compat; try lra; [apply Rlt_le, Rinv_0_lt_compat; lra|].
    apply Rinv_le_contravar; lra. }
  assert (W1 : kl / H * ((1 - r) / (1 + g)) = kl / (H * (1 + g)) * (1 - r)) by (field; lra).
  assert (W2 : kh / L * ((1 + r) / (1 - g)) = kh / (L * (1 - g)) * (1 + r)) by (field; lra).
  rewrite W1, W2.
  pose proof (Rmult_le_compat_r (1 - r) _ _ ltac:(lra) Q1).
  pose proof (Rmult_le_compat_r (1 + r) _ _ ltac:(lra) Q2). lra.
Qed.

(* What is stored: e^(z - μ), rounded once under some shift μ that is at most the last shift m, and then
   rescaled to m. It has the relative error q, and no more underflow than a rounding under m. *)
Theorem bound_unnormalised_kept (e' k q η μ m : R) : 0 <= η -> μ <= m ->
  Rabs (k - e') <= q * e' + η ->
  let f := exp (μ - m) in f * e' * (1 - q) - η <= f * k <= f * e' * (1 + q) + η.
Proof.
  intros Hη Hm Hk f. apply abs_between in Hk. pose proof (exp_pos (μ - m) : 0 < f) as F.
  assert (F1 : f <= 1) by (unfold f; rewrite <- exp_0; apply exp_le; lra).
  pose proof (Rmult_le_compat_l f _ _ (Rlt_le _ _ F) (proj1 Hk)).
  pose proof (Rmult_le_compat_l f _ _ (Rlt_le _ _ F) (proj2 Hk)).
  pose proof (Rmult_le_compat_r η _ _ Hη F1). lra.
Qed.

(* However small the terms' lower ends: the sum S has the term a of the engine's own maximum, and the
   term s of the key, of which another exponential e is at most o s and what is flushed, φ. *)
Theorem bound_unnormalised_most (S a s e k o q φ η : R) :
  0 < a <= S -> 0 <= s <= S -> 0 <= o -> 0 <= q -> 0 <= φ -> 0 <= η ->
  e <= o * s + φ -> k <= e * (1 + q) + η ->
  k / S <= o * (1 + q) + (φ * (1 + q) + η) / a.
Proof.
  intros [Ha HS] [Hs0 Hs] Ho Hq Hφ Hη He Hk.
  assert (P : 0 < S) by lra.
  assert (K : k <= o * (1 + q) * S + (φ * (1 + q) + η)).
  { assert (e * (1 + q) <= (o * s + φ) * (1 + q)) by (apply Rmult_le_compat_r; lra).
    assert (o * s <= o * S) by (apply Rmult_le_compat_l; lra).
    assert (o * s * (1 + q) <= o * S * (1 + q)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (N : 0 <= φ * (1 + q) + η) by nra.
  assert (D : (φ * (1 + q) + η) / S <= (φ * (1 + q) + η) / a).
  { unfold Rdiv. apply Rmult_le_compat_l; [exact N|]. apply Rinv_le_contravar; lra. }
  assert (E : (o * (1 + q) * S + (φ * (1 + q) + η)) / S = o * (1 + q) + (φ * (1 + q) + η) / S)
    by (field; lra).
  pose proof (Rmult_le_compat_r (/ S) _ _ (Rlt_le _ _ (Rinv_0_lt_compat _ P)) K) as Q.
  unfold Rdiv in *. lra.
Qed.
(*< bound.unnormalised *)

(* ---- values read before they are rounded ---- *)

(* v is the number of a format nearest to x, and p and n are its neighbours in this format. x lies in
   [lo, hi]. The reader gets r: the stored v, or x before it was rounded. *)
(*> bound.unrounded *)
Theorem bound_unrounded (p v n x lo hi r : R) :
  p < v < n -> Rabs (v - x) <= Rabs (p - x) -> Rabs (v - x) <= Rabs (n - x) ->
  lo <= x <= hi -> r = v \/ r = x ->
  Rmin v (Rmax lo ((p + v) / 2)) <= r <= Rmax v (Rmin hi ((v + n) / 2)).
Proof.
  intros Hv Hp Hn Hx Hr.
  assert (U : x <= (v + n) / 2).
  { destruct (Rle_lt_dec x ((v + n) / 2)) as [H | H]; [exact H|]. exfalso.
    rewrite (Rabs_left1 (v - x)) in Hn by lra. unfold Rabs in Hn.
    destruct (Rcase_abs (n - x)); lra. }
  assert (L : (p + v) / 2 <= x).
  { destruct (Rle_lt_dec ((p + v) / 2) x) as [H | H]; [exact H|]. exfalso.
    rewrite (Rabs_pos_eq (v - x)) in Hp by lra. unfold Rabs in Hp.
    destruct (Rcase_abs (p - x)); lra. }
  destruct Hr as [-> | ->].
  - split; [apply Rmin_l | apply Rmax_l].
  - split.
    + eapply Rle_trans; [apply Rmin_r | apply Rmax_lub; lra].
    + eapply Rle_trans; [|apply Rmax_r]. apply Rmin_glb; lra.
Qed.
(*< bound.unrounded *)
