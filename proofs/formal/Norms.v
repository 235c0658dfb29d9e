(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Normalisers that are divided by a constant (norm.scaled) or taken to a power (norm.power), a row split into its
   first key and the others (noop.split), and a norm that a few coordinates dominate (rmsnorm.spike); chapter 23.
   Similarities, values and losses are arbitrary. Assumed of a norm of vectors: the triangle inequality and
   homogeneity. *)

From Sinkproof Require Import Sums SoftmaxSink.
From Coq Require Import Reals List Arith Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(* ---- the normaliser divided by a ---- *)

(*> norm.scaled *)
Definition scaled (a : R) (W : mat) : mat := fun r c => a * W r c.

(* f j are the similarities and Z is their normaliser; both are arbitrary. *)
Theorem norm_scaled {key : Type} (J : list key) (f : key -> R) Z a d d' (x v : key -> vec) WV WO :
  a <> 0 -> Z <> 0 ->
  (∑ j ∈ J, (f j / (Z / a)) *: (x j *[d] WV) = ∑ j ∈ J, (f j / Z) *: (x j *[d] scaled a WV))%V /\
  ((∑ j ∈ J, (f j / (Z / a)) *: v j) *[d'] WO = (∑ j ∈ J, (f j / Z) *: v j) *[d'] scaled a WO)%V.
Proof.
  intros Ha HZ. assert (E : forall j, f j / (Z / a) = f j / Z * a) by (intros; field; auto). split.
  - apply vsum_ext. intros j. rewrite E. at_coordinate c. unfold scaled.
    rewrite Rmult_assoc, <- Sum_scal_l. f_equal. apply Sum_ext. intros. ring.
  - rewrite !vsum_mul. apply vsum_ext. intros j. rewrite E, !vmul_scal. at_coordinate c.
    unfold scaled. rewrite Rmult_assoc, <- Sum_scal_l. f_equal. apply Sum_ext. intros. ring.
Qed.

(* Learning. L is the loss, as a function of the matrix that the model uses. G W r c is its derivative in
   entry (r, c). *)
Definition with_entry (W : mat) r c t : mat :=
  fun r' c' => if ((r' =? r) && (c' =? c))%bool then t else W r' c'.
Definition is_gradient (L : mat -> R) (G : mat -> mat) : Prop :=
  forall W r c, is_derive (fun t => L (with_entry W r c t)) (W r c) (G W r c).
Definition step (η : R) (direction : mat -> mat) (W : mat) : mat :=
  fun r c => W r c - η * direction W r c.

Theorem norm_scaled_gradient L G a : is_gradient L G ->
  is_gradient (fun W => L (scaled a W)) (fun W => scaled a (G (scaled a W))).
Proof.
  intros H W r c.
  apply (is_derive_ext (fun t => L (with_entry (scaled a W) r c (a * t)))).
  - intros t. f_equal. apply FunctionalExtensionality.functional_extensionality. intros r'.
    apply FunctionalExtensionality.functional_extensionality. intros c'. unfold scaled, with_entry.
    destruct (_ && _)%bool; reflexivity.
  - pose proof (H (scaled a W) r c) as D.
    apply (is_derive_comp (fun u => L (with_entry (scaled a W) r c u)) (fun t => a * t) (W r c) _ a).
    + exact D.
    + auto_derive; [trivial | ring].
Qed.
(*< norm.scaled *)

Lemma iter_S {A : Type} (f : A -> A) x n : Nat.iter (S n) f x = f (Nat.iter n f x).
Proof. reflexivity. Qed.

(*> norm.scaled *)
(* Any number of gradient steps, each with the gradient at the current weights. If the model uses a W, then
   the rate η on W is the rate a² η on the weights that the model uses. *)
Theorem norm_scaled_steps G a η W s :
  scaled a (Nat.iter s (step η (fun W => scaled a (G (scaled a W)))) W) =
  Nat.iter s (step (a ^ 2 * η) G) (scaled a W).
Proof.
  induction s as [|s IH]; [reflexivity|]. rewrite !iter_S, <- IH.
  set (V := Nat.iter s _ W). apply FunctionalExtensionality.functional_extensionality. intros r.
  apply FunctionalExtensionality.functional_extensionality. intros c. unfold step, scaled. ring.
Qed.

(* An optimiser that takes the direction D of the gradient and ignores its size: D (a G) = D G for a > 0, for
   instance the signs. Then the rate is a η. *)
Theorem norm_scaled_directions (D : mat -> mat) G a η W s :
  0 < a -> (forall V, D (scaled a V) = D V) ->
  scaled a (Nat.iter s (step η (fun W => D (scaled a (G (scaled a W))))) W) =
  Nat.iter s (step (a * η) (fun W => D (G W))) (scaled a W).
Proof.
  intros Ha HD. induction s as [|s IH]; [reflexivity|]. rewrite !iter_S, <- IH.
  set (V := Nat.iter s _ W). apply FunctionalExtensionality.functional_extensionality. intros r.
  apply FunctionalExtensionality.functional_extensionality. intros c. unfold step. rewrite HD.
  unfold scaled. ring.
Qed.
(*< norm.scaled *)

(* ---- the normaliser (sum sim^p)^(1/p) ---- *)

Section Power.
  Context {key : Type} (J : list key).

  (*> norm.power *)
  Definition power_weight (p : R) (sim : key -> R) j : R :=
    sim j / Rpower (∑ k ∈ J, Rpower (sim k) p) (1 / p).
  (*< norm.power *)

  Lemma Rpower_exp s p : Rpower (exp s) p = exp (p * s).
  Proof. unfold Rpower. rewrite ln_exp. reflexivity. Qed.

  Lemma Rpower_div x y p : 0 < x -> 0 < y -> Rpower (x / y) p = Rpower x p / Rpower y p.
  Proof.
    intros. unfold Rpower. rewrite ln_div by assumption.
    replace (p * (ln x - ln y)) with (p * ln x + - (p * ln y)) by ring.
    rewrite exp_plus, exp_Ropp. reflexivity.
  Qed.

  Lemma power_root s p j : J <> [] -> p <> 0 ->
    power_weight p (fun k => exp (s k)) j = Rpower (softmax J (fun k => p * s k) j) (1 / p).
  Proof.
    intros HJ Hp. unfold power_weight, softmax.
    rewrite (Sum_ext _ _ (fun k => exp (p * s k))) by (intros; apply Rpower_exp).
    rewrite Rpower_div by (try apply sum_exp_pos; auto using exp_pos).
    rewrite Rpower_exp. f_equal. f_equal. field. exact Hp.
  Qed.

  (*> norm.power *)
  (* For sim = e^s the weight is the p-th root of the softmax at temperature 1/p. The p-th powers of the
     weights sum to 1, and p = 1 gives the softmax. Each of n equal scores has the weight n^(-1/p); together
     they have n^(1 - 1/p). *)
  Theorem norm_power s p : J <> [] -> 0 < p -> let w := power_weight p (fun k => exp (s k)) in
    (forall j, w j = Rpower (softmax J (fun k => p * s k) j) (1 / p)) /\
    ∑ j ∈ J, Rpower (w j) p = 1 /\
    (p = 1 -> forall j, w j = softmax J s j) /\
    (forall c, (forall j, In j J -> s j = c) ->
       (forall j, In j J -> w j = Rpower (INR (length J)) (- (1 / p))) /\
       ∑ j ∈ J, w j = Rpower (INR (length J)) (1 - 1 / p)).
  Proof.
    intros HJ Hp w. assert (P0 : p <> 0) by lra.
    assert (R : forall j, w j = Rpower (softmax J (fun k => p * s k) j) (1 / p))
      by (intros; apply power_root; assumption).
    assert (S0 : forall s, 0 < ∑ k ∈ J, exp (s k)) by (intros; apply sum_exp_pos, HJ).
    assert (SP : forall s j, 0 < softmax J s j)
      by (intros; apply Rdiv_lt_0_compat; [apply exp_pos | apply S0]).
    split; [exact R|]. split; [|split].
    - rewrite (Sum_ext _ _ (softmax J (fun k => p * s k))).
      + unfold softmax. rewrite Sum_div. apply Rinv_r, Rgt_not_eq, S0.
      + intros j. rewrite R, Rpower_mult. replace (1 / p * p) with 1 by (field; exact P0).
        apply Rpower_1, SP.
    - intros -> j. rewrite R. replace (1 / 1) with 1 by field. rewrite Rpower_1 by apply SP.
      unfold softmax.
      rewrite (Sum_ext _ _ (fun k => exp (s k))), Rmult_1_l
        by (intros; rewrite Rmult_1_l; reflexivity).
      reflexivity.
    - intros c Hc.
      assert (N : 0 < INR (length J)) by (destruct J; [congruence | apply (lt_INR 0); simpl; lia]).
      assert (E : forall j, In j J -> w j = Rpower (INR (length J)) (- (1 / p))).
      { intros j Hj. rewrite R. rewrite Rpower_Ropp. unfold Rpower. rewrite <- exp_Ropp. f_equal.
        replace (softmax J (fun k => p * s k) j) with (/ INR (length J)).
        - rewrite ln_Rinv by exact N. ring.
        - unfold softmax. rewrite (Sum_ext_in _ _ (fun _ => exp (p * c))), Sum_const by
            (intros k Hk; rewrite (Hc k Hk); reflexivity).
          rewrite (Hc j Hj). pose proof (exp_pos (p * c)). field. lra. }
      split; [exact E|]. 
      transitivity (∑ _j ∈ J, Rpower (INR (length J)) (- (1 / p))); [apply Sum_ext_in, E|].
      rewrite Sum_const. unfold Rminus. rewrite Rpower_plus, Rpower_1 by exact N. reflexivity.
  Qed.
  (*< norm.power *)
End Power.

(* ---- the first key and the others ---- *)

(*> noop.split *)
(* [norm] is any norm: of one coordinate, of a head, of the largest entry. The weights w are not negative and
   sum to 1 - α, where α is the sink's weight (0 without a sink). f is the first key, J lists the others. *)
Theorem noop_split {key : Type} (norm : vec -> R) (f : key) (J : list key) (w : key -> R)
    (v : key -> vec) α V :
  (forall x y, norm (x + y)%V <= norm x + norm y) ->
  (forall a x, norm (a *: x)%V = Rabs a * norm x) ->
  (forall j, In j (f :: J) -> 0 <= w j) -> ∑ j ∈ f :: J, w j = 1 - α ->
  (forall j, In j J -> norm (v j) <= V) ->
  let o := (∑ j ∈ f :: J, w j *: v j)%V in let rest := (∑ j ∈ J, w j *: v j)%V in
  o = (w f *: v f + rest)%V /\
  norm rest <= (1 - α - w f) * V /\
  norm o <= w f * norm (v f) + (1 - α - w f) * V /\
  norm (o + - (w f *: v f))%V <= (1 - α - w f) * V.
Proof.
  intros Tri Hom Pos Mass HV o rest.
  assert (Z : norm (fun _ => 0) = 0).
  { replace (fun _ : nat => 0) with (0 *: (fun _ : nat => 0))%V
      by (apply vec_eq; intros; unfold vscal; ring).
    rewrite Hom, Rabs_R0. ring. }
  assert (B : forall K, (forall j, In j K -> In j J) ->
    norm (∑ j ∈ K, w j *: v j)%V <= (∑ j ∈ K, w j) * V).
  { induction K as [|k K IH]; intros I.
    - change (norm (fun _ => 0) <= 0 * V). rewrite Z. lra.
    - replace (∑ j ∈ k :: K, w j *: v j)%V with (w k *: v k + ∑ j ∈ K, w j *: v j)%V by reflexivity.
      apply (Rle_trans _ _ _ (Tri _ _)). cbn [Sum]. rewrite Rmult_plus_distr_r.
      apply Rplus_le_compat.
      + rewrite Hom, Rabs_right by (apply Rle_ge, Pos; right; apply I; left; reflexivity).
        apply Rmult_le_compat_l; [apply Pos; right; apply I; left; reflexivity | apply HV, I; left;
            reflexivity].
      + apply IH. intros j Hj. apply I. right. exact Hj. }
  assert (S : ∑ j ∈ J, w j = 1 - α - w f) by (cbn [Sum] in Mass; lra).
  assert (R : norm rest <= (1 - α - w f) * V) by (rewrite <- S; apply B; auto).
  assert (E : o = (w f *: v f + rest)%V) by reflexivity.
  split; [exact E|]. split; [exact R|]. split.
  - rewrite E. apply (Rle_trans _ _ _ (Tri _ _)).
    rewrite Hom, Rabs_right by (apply Rle_ge, Pos; left; reflexivity). lra.
  - replace (o + - (w f *: v f))%V with rest; [exact R|]. rewrite E. at_coordinate c. ring.
Qed.
(*< noop.split *)

Lemma mass_of_others {key : Type} (f : key) J s b :
  1 - alpha_sink (f :: J) s b - alpha (f :: J) s b f =
  (∑ j ∈ J, exp (s j)) / (exp b + (exp (s f) + ∑ j ∈ J, exp (s j))).
Proof.
  unfold alpha_sink, alpha. cbn [Sum]. pose proof (exp_pos b). pose proof (exp_pos (s f)).
  pose proof (sum_exp_nonneg J s). field. lra.
Qed.

(*> noop.split *)
(* The mass of the other keys, if the first key's score is at least m above each of theirs. To keep this mass
   constant as t grows, m must grow like ln t. *)
Theorem noop_split_margin (s : nat -> R) b t m :
  (forall j, (1 <= j <= t)%nat -> s j <= s 0%nat - m) ->
  1 - alpha_sink (seq 0 (S t)) s b - alpha (seq 0 (S t)) s b 0%nat <= INR t / (INR t + exp m).
Proof.
  intros H. change (seq 0 (S t)) with (0%nat :: seq 1 t). rewrite mass_of_others.
  pose proof (exp_pos b) as Pb. pose proof (exp_pos (s 0%nat)) as P0. pose proof (exp_pos m) as Pm.
  pose proof (sum_exp_nonneg (seq 1 t) s) as N. pose proof (pos_INR t) as T.
  assert (B : ∑ j ∈ seq 1 t, exp (s j) <= INR t * exp (s 0%nat - m)).
  { replace (INR t) with (INR (length (seq 1 t))) by (rewrite seq_length; reflexivity).
    rewrite <- Sum_const. apply Sum_le. intros j Hj. apply in_seq in Hj.
    destruct (H j ltac:(lia)) as [L | ->]; [apply Rlt_le, exp_increasing, L | lra]. }
  unfold Rminus in B. rewrite exp_plus, exp_Ropp in B.
  set (r := ∑ j ∈ seq 1 t, exp (s j)) in *. set (z := exp (s 0%nat)) in *. set (M := exp m) in *.
  assert (C : r * M <= INR t * z).
  { apply (Rmult_le_compat_r M) in B; [|lra].
    replace (INR t * (z * / M) * M) with (INR t * z) in B by (field; lra).
    exact B. }
  apply Rle_div_l; [lra|]. replace (INR t / (INR t + M) * (exp b + (z + r))) with
    (INR t * (exp b + (z + r)) / (INR t + M)) by (field; lra).
  apply Rle_div_r; [lra|]. nra.
Qed.
(*< noop.split *)

(* ---- a norm that few coordinates dominate ---- *)

(* In rmsnorm_spike, q is the sum of squares of the spikes, and r that of the other coordinates plus d ε. *)
Lemma root_shift q r : 0 < q -> 0 <= r -> 1 - r / (2 * q) <= sqrt q / sqrt (q + r) <= 1.
Proof.
  intros Hq Hr. assert (Q : 0 < sqrt q) by (apply sqrt_lt_R0, Hq).
  assert (QR : 0 < sqrt (q + r)) by (apply sqrt_lt_R0; lra).
  pose proof (sqrt_sqrt q (Rlt_le _ _ Hq)) as E. pose proof (sqrt_sqrt (q + r) ltac:(lra)) as ER.
  set (a := sqrt q) in *. set (c := sqrt (q + r)) in *.
  assert (M : a <= c) by (apply sqrt_le_1_alt; lra). split.
  - apply (Rmult_le_reg_r (2 * q * c)); [nra|]. field_simplify; [|lra|lra].
    replace r with (c * c - a * a) by lra. rewrite <- E.
    assert (0 <= (c - a) * (c - a) * (c + 2 * a))
      by (apply Rmult_le_pos; [apply Rle_0_sqr | lra]). nra.
  - apply (Rmult_le_reg_r c); [exact QR|]. field_simplify; lra.
Qed.

Section Spike.
  Context (d : nat) (h w : vec) (spikes rest : list nat) (ε : R).

  (*> rmsnorm.spike *)
  Definition squares (K : list nat) : R := ∑ c ∈ K, h c * h c.
  Definition normed c : R := h c / sqrt ((squares spikes + squares rest) / INR d + ε) * w c.
  (* RMSNorm of the spikes alone. Multiplying all spikes by one positive factor does not change it. *)
  Definition kept c : R := sqrt (INR d) * (h c / sqrt (squares spikes)) * w c.

  Theorem rmsnorm_spike : (0 < d)%nat -> 0 <= ε -> 0 < squares spikes ->
    let ρ2 := (squares rest + INR d * ε) / squares spikes in
    (forall c, Rabs (normed c) <= Rabs (kept c)) /\
    (forall c, Rabs (normed c - kept c) <= ρ2 / 2 * Rabs (kept c)) /\
    ∑ c ∈ rest, (h c / sqrt ((squares spikes + squares rest) / INR d + ε)) ^ 2 <=
      INR d * (squares rest / squares spikes).
  (*< rmsnorm.spike *)
  Proof.
    intros Hd He Hs ρ2. assert (D : 0 < INR d) by (apply (lt_INR 0), Hd).
    assert (R0 : 0 <= squares rest) by (apply Sum_nonneg; intros; nra).
    set (q := squares spikes) in *. set (r := squares rest + INR d * ε).
    assert (Hr : 0 <= r) by (unfold r; nra).
    assert (Q : 0 < sqrt q) by (apply sqrt_lt_R0, Hs).
    assert (QR : 0 < sqrt (q + r)) by (apply sqrt_lt_R0; lra).
    assert (SD : 0 < sqrt (INR d)) by (apply sqrt_lt_R0, D).
    assert (E : sqrt ((q + squares rest) / INR d + ε) = sqrt (q + r) / sqrt (INR d)).
    { replace ((q + squares rest) / INR d + ε) with ((q + r) / INR d) by (unfold r; field; lra).
      apply sqrt_div_alt, D. }
    assert (F : forall c, normed c = sqrt q / sqrt (q + r) * kept c).
    { intros c. unfold normed, kept. fold q. rewrite E. field. lra. }
    pose proof (root_shift q r Hs Hr) as [L U].
    assert (P : 0 < sqrt q / sqrt (q + r)) by (apply Rdiv_lt_0_compat; assumption).
    split; [|split].
    - intros c. rewrite F, Rabs_mult, (Rabs_right (sqrt q / _)) by lra.
      pose proof (Rabs_pos (kept c)). nra.
    - intros c. rewrite F. replace (sqrt q / sqrt (q + r) * kept c - kept c) with
        ((sqrt q / sqrt (q + r) - 1) * kept c) by ring.
      rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|]. rewrite Rabs_left1 by lra.
      replace (ρ2 / 2) with (r / (2 * q)) by (unfold ρ2, r; field; lra). lra.
    - rewrite E.
      rewrite (Sum_ext _ _ (fun c => INR d / (q + r) * (h c * h c))).
      + rewrite Sum_scal_l. fold (squares rest).
        replace (INR d * (squares rest / q)) with (INR d / q * squares rest) by (field; lra).
        apply Rmult_le_compat_r; [exact R0|]. unfold Rdiv. apply Rmult_le_compat_l; [lra|].
        apply Rinv_le_contravar; lra.
      + intros c. pose proof (sqrt_sqrt (q + r) ltac:(lra)) as E1.
        pose proof (sqrt_sqrt (INR d) (Rlt_le _ _ D)) as E2.
        set (a := sqrt (q + r)) in *. set (s := sqrt (INR d)) in *. rewrite <- E1, <- E2. field.
        lra.
  Qed.
End Spike.
