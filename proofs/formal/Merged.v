(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Outputs of parts of the keys that are rounded and merged (bound.parts-merged), in any tree of merges, with any keys
   in each part. A log-sum-exp that is rounded before the sink's gate reads it (bound.lse-rounded). Assumed: an error
   bound for each rounding, and for each merge weight; roundings are monotone. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Operands.
From Coq Require Import Reals List Permutation Lra Lia Psatz.
Import ListNotations.
Open Scope R_scope.

(* A part is a list of keys: a mass e >= 0, the exponential of its score, and a value v. The sink is a key of the value
   0. The numbers are not divided: Y is an output times the mass of its keys. A merge multiplies the outputs l and r
   by their shares times (1 + ε), after each of them was rounded (kept = false) or not: it errs by r and by θ. *)
Inductive parts :=
| Part (l : list (R * R))
| Merge (a b : parts) (εa εb ra rb θ : R) (ka kb : bool).

Fixpoint keys (t : parts) : list (R * R) :=
  match t with
  | Part l => l
  | Merge a b _ _ _ _ _ _ _ => keys a ++ keys b
  end.

Definition mass (l : list (R * R)) : R := ∑ p ∈ l, fst p.
Definition real (l : list (R * R)) : R := ∑ p ∈ l, fst p * snd p.
Definition sizes (l : list (R * R)) : R := ∑ p ∈ l, fst p * Rabs (snd p).

Fixpoint merged (t : parts) : R :=
  match t with
  | Part l => real l
  | Merge a b εa εb ra rb θ _ _ => (1 + εa) * (merged a + ra) + (1 + εb) * (merged b + rb) + θ
  end.

(* The rounding errs by u of the output, and by η; nothing where the output is kept. *)
Definition rounds (u η y m r : R) (kept : bool) : Prop :=
  if kept then r = 0 else Rabs r <= u * Rabs y + η * m.

Definition less (k : nat) (kept : bool) : nat := if kept then k else pred k.

(* At most d merges on any way from a part, at most k of whose outputs are rounded. a is the product of the weights'
   errors on the way from above: it stays within X. *)
Fixpoint fits (u η ζ X : R) (d k : nat) (a : R) (t : parts) : Prop :=
  / X <= a <= X /\
  match t with
  | Part l => Forall (fun p => 0 <= fst p) l
  | Merge l r εa εb ra rb θ ka kb =>
      (0 < d)%nat /\ (ka = false -> (0 < k)%nat) /\ (kb = false -> (0 < k)%nat) /\
      rounds u η (merged l) (mass (keys l)) ra ka /\ rounds u η (merged r) (mass (keys r)) rb kb /\
      Rabs θ <= ζ * mass (keys t) /\
      fits u η ζ X (pred d) (less k ka) (a * (1 + εa)) l /\ fits u η ζ X (pred d) (less k kb) (a * (1 + εb)) r
  end.

Lemma fits_masses u η ζ X t : forall d k a, fits u η ζ X d k a t -> Forall (fun p => 0 <= fst p) (keys t).
Proof.
  induction t as [l | l Hl r Hr]; intros d k a [_ H]; [exact H|].
  destruct H as (_ & _ & _ & _ & _ & _ & L & R'). cbn [keys]. apply Forall_app. split; eauto.
Qed.

Lemma mass_nonneg l : Forall (fun p => 0 <= fst p) l -> 0 <= mass l.
Proof. intros F. apply Sum_nonneg. intros p Hp. rewrite Forall_forall in F. apply F, Hp. Qed.

Lemma sizes_nonneg l : Forall (fun p => 0 <= fst p) l -> 0 <= sizes l.
Proof.
  intros F. apply Sum_nonneg. intros p Hp. rewrite Forall_forall in F.
  apply Rmult_le_pos; [apply F, Hp | apply Rabs_pos].
Qed.

Lemma real_le_sizes l : Forall (fun p => 0 <= fst p) l -> Rabs (real l) <= sizes l.
Proof.
  intros F. unfold real, sizes. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros p Hp.
  rewrite Forall_forall in F. rewrite Rabs_mult, (Rabs_pos_eq (fst p)) by (apply F, Hp). lra.
Qed.

(* One child: its own error, then its rounding. *)
Lemma rounded_child (u η a X y v r s m : R) (kept : bool) (P L : R) :
  0 <= u -> 0 <= η -> 0 <= m -> 0 <= a <= X -> Rabs v <= s ->
  rounds u η y m r kept -> Rabs (a * y - v) <= (P - 1) * s + L * m ->
  Rabs (a * (y + r) - v) <=
    if kept then (P - 1) * s + L * m else ((1 + u) * P - 1) * s + ((1 + u) * L + X * η) * m.
Proof.
  intros Hu Hη Hm Ha Hv Hr E. unfold rounds in Hr. destruct kept; [subst r; rewrite Rplus_0_r; exact E|].
  replace (a * (y + r) - v) with ((a * y - v) + a * r) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq a) by lra.
  pose proof (Rmult_le_compat_l a _ _ (proj1 Ha) Hr) as B.
  assert (Y : a * Rabs y <= s + ((P - 1) * s + L * m)).
  { rewrite <- (Rabs_pos_eq a) at 1 by lra. rewrite <- Rabs_mult.
    replace (a * y) with (v + (a * y - v)) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
  pose proof (Rmult_le_compat_l u _ _ Hu Y) as C.
  pose proof (Rmult_le_compat_r (η * m) _ _ (Rmult_le_pos _ _ Hη Hm) (proj2 Ha)). lra.
Qed.

(* What k roundings and d merges lose on a way, for each unit of mass. *)
Definition lost (u η ζ X : R) (d k : nat) : R := X * (1 + u) ^ k * (INR k * η + INR d * ζ).

Lemma lost_step u η ζ X d k (kept : bool) : 0 <= u -> 0 <= η -> 0 <= ζ -> 1 <= X -> (0 < d)%nat ->
  (kept = false -> (0 < k)%nat) ->
  (if kept then lost u η ζ X (pred d) (less k kept)
   else (1 + u) * lost u η ζ X (pred d) (less k kept) + X * η) + X * ζ <= lost u η ζ X d k.
Proof.
  intros Hu Hη Hζ HX Hd Hk. unfold lost, less. destruct d as [|d]; [lia|]. cbn [pred].
  assert (P : forall n, 1 <= (1 + u) ^ n) by (intros; apply pow_R1_Rle; lra).
  assert (D : 0 <= INR d) by apply pos_INR.
  destruct kept.
  - rewrite S_INR. pose proof (P k). pose proof (pos_INR k).
    assert (X * ζ <= X * (1 + u) ^ k * ζ).
    { rewrite (Rmult_comm X ((1 + u) ^ k)), Rmult_assoc. rewrite <- (Rmult_1_l (X * ζ)) at 1.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | exact H]. }
    nra.
  - destruct k as [|k]; [specialize (Hk eq_refl); lia|]. cbn [pred]. rewrite !S_INR. cbn [pow].
    pose proof (P k) as Pk. set (G := (1 + u) ^ k) in *.
    assert (G1 : 1 <= (1 + u) * G) by nra.
    assert (A : X * η <= X * ((1 + u) * G) * η).
    { rewrite (Rmult_comm X ((1 + u) * G)), Rmult_assoc. rewrite <- (Rmult_1_l (X * η)) at 1.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | exact G1]. }
    assert (B : X * ζ <= X * ((1 + u) * G) * ζ).
    { rewrite (Rmult_comm X ((1 + u) * G)), Rmult_assoc. rewrite <- (Rmult_1_l (X * ζ)) at 1.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | exact G1]. }
    lra.
Qed.

Lemma mass_app l r : mass (l ++ r) = mass l + mass r.
Proof. unfold mass. apply Sum_app. Qed.
Lemma real_app l r : real (l ++ r) = real l + real r.
Proof. unfold real. apply Sum_app. Qed.
Lemma sizes_app l r : sizes (l ++ r) = sizes l + sizes r.
Proof. unfold sizes. apply Sum_app. Qed.

Lemma merged_error u η ζ X t : 0 <= u -> 0 <= η -> 0 <= ζ -> 1 <= X -> forall d k a, fits u η ζ X d k a t ->
  Rabs (a * merged t - real (keys t)) <=
    (X * (1 + u) ^ k - 1) * sizes (keys t) + lost u η ζ X d k * mass (keys t).
Proof.
  intros Hu Hη Hζ HX.
  assert (P : forall n, 1 <= (1 + u) ^ n) by (intros; apply pow_R1_Rle; lra).
  assert (LN : forall d k, 0 <= lost u η ζ X d k).
  { intros. unfold lost. pose proof (P k). pose proof (pos_INR k). pose proof (pos_INR d).
    apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra. }
  assert (XI : / X <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (XP : 0 < / X) by (apply Rinv_0_lt_compat; lra).
  assert (XM : 1 - (X - 1) <= / X).
  { apply Rmult_le_reg_r with X; [lra|]. rewrite Rinv_l by lra. nra. }
  induction t as [l | l IHl r IHr εa εb ra rb θ ka kb]; intros d k a F.
  - destruct F as [A F]. cbn [merged keys].
    pose proof (real_le_sizes l F). pose proof (sizes_nonneg l F). pose proof (mass_nonneg l F).
    replace (a * real l - real l) with ((a - 1) * real l) by ring. rewrite Rabs_mult.
    assert (Rabs (a - 1) <= X - 1) by (unfold Rabs; destruct Rcase_abs; lra).
    pose proof (Rmult_le_compat _ _ _ _ (Rabs_pos (a - 1)) (Rabs_pos (real l)) H2 H).
    pose proof (Rmult_le_pos _ _ (LN d k) H1). pose proof (P k).
    assert ((X - 1) * sizes l <= (X * (1 + u) ^ k - 1) * sizes l) by (apply Rmult_le_compat_r; nra). lra.
  - pose proof (fits_masses _ _ _ _ _ _ _ _ F) as M. cbn [keys] in M. apply Forall_app in M. destruct M as [Ml Mr].
    destruct F as (A & Hd & Ka & Kb & Ra & Rb & Tθ & Fl & Fr). cbn [keys] in *.
    pose proof (IHl _ _ _ Fl) as El. pose proof (IHr _ _ _ Fr) as Er.
    assert (Al : / X <= a * (1 + εa) <= X) by (destruct l; apply Fl).
    assert (Ar : / X <= a * (1 + εb) <= X) by (destruct r; apply Fr).
    pose proof (mass_nonneg _ Ml) as ml. pose proof (mass_nonneg _ Mr) as mr.
    pose proof (sizes_nonneg _ Ml) as sl. pose proof (sizes_nonneg _ Mr) as sr.
    pose proof (rounded_child u η (a * (1 + εa)) X _ _ ra _ _ ka _ _ Hu Hη ml ltac:(lra)
      (real_le_sizes _ Ml) Ra El) as Bl.
    pose proof (rounded_child u η (a * (1 + εb)) X _ _ rb _ _ kb _ _ Hu Hη mr ltac:(lra)
      (real_le_sizes _ Mr) Rb Er) as Br.
    pose proof (lost_step u η ζ X d k ka Hu Hη Hζ HX Hd Ka) as Sl.
    pose proof (lost_step u η ζ X d k kb Hu Hη Hζ HX Hd Kb) as Sr.
    rewrite mass_app in Tθ. rewrite real_app, sizes_app, mass_app. cbn [merged].
    replace (a * ((1 + εa) * (merged l + ra) + (1 + εb) * (merged r + rb) + θ) - (real (keys l) + real (keys r)))
      with ((a * (1 + εa) * (merged l + ra) - real (keys l)) +
            (a * (1 + εb) * (merged r + rb) - real (keys r)) + a * θ) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (Tθ' : Rabs (a * θ) <= X * ζ * (mass (keys l) + mass (keys r))).
    { rewrite Rabs_mult, (Rabs_pos_eq a) by lra.
      pose proof (Rmult_le_compat a X _ _ ltac:(lra) (Rabs_pos θ) ltac:(lra) Tθ). lra. }
    assert (child : forall (kept : bool) s m B, 0 <= s -> 0 <= m -> (kept = false -> (0 < k)%nat) ->
      B <= (if kept then (X * (1 + u) ^ less k kept - 1) * s + lost u η ζ X (pred d) (less k kept) * m
            else ((1 + u) * (X * (1 + u) ^ less k kept) - 1) * s +
                 ((1 + u) * lost u η ζ X (pred d) (less k kept) + X * η) * m) ->
      (if kept then lost u η ζ X (pred d) (less k kept)
       else (1 + u) * lost u η ζ X (pred d) (less k kept) + X * η) + X * ζ <= lost u η ζ X d k ->
      B + X * ζ * m <= (X * (1 + u) ^ k - 1) * s + lost u η ζ X d k * m).
    { intros kept s m B Hs Hm Hk HB HL. pose proof (Rmult_le_compat_r m _ _ Hm HL) as HM.
      destruct kept; unfold less in *; [lra|]. destruct k as [|k']; [specialize (Hk eq_refl); lia|].
      cbn [pred] in *. rewrite <- tech_pow_Rmult. lra. }
    pose proof (child ka _ _ _ sl ml Ka Bl Sl). pose proof (child kb _ _ _ sr mr Kb Br Sr).
    pose proof (Rabs_triang (a * (1 + εa) * (merged l + ra) - real (keys l))
                            (a * (1 + εb) * (merged r + rb) - real (keys r))). lra.
Qed.

(*> bound.parts-merged *)
(* The keys of any tree of merges are those of J in some order, and their masses add up to 1: with the sink's. *)
Theorem bound_parts_merged (u η ζ X : R) (d k : nat) (t : parts) (J : list (R * R)) :
  0 <= u -> 0 <= η -> 0 <= ζ -> 1 <= X -> fits u η ζ X d k 1 t -> Permutation (keys t) J ->
  ∑ p ∈ J, fst p = 1 ->
  Rabs (merged t - ∑ p ∈ J, fst p * snd p) <=
    (X * (1 + u) ^ k - 1) * (∑ p ∈ J, fst p * Rabs (snd p)) + X * (1 + u) ^ k * (INR k * η + INR d * ζ).
Proof.
  intros Hu Hη Hζ HX F P M. pose proof (merged_error u η ζ X t Hu Hη Hζ HX d k 1 F) as E.
  rewrite Rmult_1_l in E. unfold real, sizes, mass in E.
  rewrite !(Sum_perm _ _ _ P), M, Rmult_1_r in E. exact E.
Qed.

(* The LSE of several parts moves no more than theirs do. *)
Theorem bound_parts_merged_lse {key} (J : list key) (L l : key -> R) (x : R) : J <> [] ->
  (forall p, In p J -> Rabs (L p - l p) <= x) ->
  Rabs (ln (∑ p ∈ J, exp (L p)) - ln (∑ p ∈ J, exp (l p))) <= x.
Proof.
  intros HJ H.
  assert (pos : forall f : key -> R, 0 < ∑ p ∈ J, exp (f p)).
  { intros f. destruct J as [|j J']; [congruence|]. cbn. pose proof (exp_pos (f j)).
    assert (0 <= ∑ p ∈ J', exp (f p)) by (apply Sum_nonneg; intros; apply Rlt_le, exp_pos). lra. }
  assert (half : forall f g : key -> R, (forall p, In p J -> f p <= g p + x) ->
    ln (∑ p ∈ J, exp (f p)) <= ln (∑ p ∈ J, exp (g p)) + x).
  { intros f g B. rewrite <- (ln_exp x) at 1. rewrite <- ln_mult by (apply pos || apply exp_pos).
    assert (S : ∑ p ∈ J, exp (f p) <= (∑ p ∈ J, exp (g p)) * exp x).
    { rewrite Rmult_comm, <- Sum_scal_l. apply Sum_le. intros p Hp. rewrite <- exp_plus.
      specialize (B p Hp). destruct (Req_dec (f p) (x + g p)) as [-> | N]; [lra|].
      apply Rlt_le, exp_increasing. lra. }
    destruct S as [S | ->]; [apply Rlt_le, ln_increasing; [apply pos | exact S] | lra]. }
  pose proof (half L l ltac:(intros p Hp; specialize (H p Hp); unfold Rabs in H; destruct Rcase_abs; lra)).
  pose proof (half l L ltac:(intros p Hp; specialize (H p Hp); unfold Rabs in H; destruct Rcase_abs; lra)).
  unfold Rabs. destruct Rcase_abs; lra.
Qed.

(* The weights on a way of d merges. L i is the LSE of the i-th output as it was computed, Λ i that of the computed LSEs
   that were merged into it. What lies between two merges cancels but for e, the error of an LSE; each weight has a
   factor within e^x and e^-x of its own. *)
Fixpoint way (L Λ φ : nat -> R) (d : nat) : R :=
  match d with
  | O => 0
  | S n => way L Λ φ n + (L n - Λ (S n) + φ n)
  end.

Theorem bound_parts_merged_way (L Λ φ : nat -> R) (d : nat) (first last e0 e1 e x : R) : (0 < d)%nat ->
  Rabs (L O - first) <= e0 -> Rabs (Λ d - last) <= e1 ->
  (forall i, (0 < i < d)%nat -> Rabs (L i - Λ i) <= e) -> (forall i, (i < d)%nat -> Rabs (φ i) <= x) ->
  Rabs (way L Λ φ d - (first - last)) <= e0 + e1 + INR (d - 1) * e + INR d * x.
Proof.
  intros Hd H0 H1 He Hx.
  assert (K : forall n, (0 < n <= d)%nat ->
    Rabs (way L Λ φ n - (L O - Λ n)) <= INR (n - 1) * e + INR n * x).
  { induction n as [|n IH]; intros B; [lia|]. destruct n as [|n].
    - cbn. replace (0 + (L 0%nat - Λ 1%nat + φ 0%nat) - (L 0%nat - Λ 1%nat)) with (φ 0%nat) by ring.
      specialize (Hx 0%nat ltac:(lia)). lra.
    - specialize (IH ltac:(lia)). cbn [way] in *. set (W := way L Λ φ n + (L n - Λ (S n) + φ n)) in *.
      replace (W + (L (S n) - Λ (S (S n)) + φ (S n)) - (L 0%nat - Λ (S (S n))))
        with ((W - (L 0%nat - Λ (S n))) + (L (S n) - Λ (S n)) + φ (S n)) by ring.
      eapply Rle_trans; [apply Rabs_triang|].
      pose proof (Rabs_triang (W - (L 0%nat - Λ (S n))) (L (S n) - Λ (S n))).
      specialize (He (S n) ltac:(lia)). specialize (Hx (S n) ltac:(lia)).
      replace (S (S n) - 1)%nat with (S (S n - 1))%nat by lia. rewrite (S_INR (S n - 1)), (S_INR (S n)). lra. }
  specialize (K d ltac:(lia)).
  replace (way L Λ φ d - (first - last))
    with ((way L Λ φ d - (L O - Λ d)) + (L O - first) + - (Λ d - last)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
  pose proof (Rabs_triang (way L Λ φ d - (L O - Λ d)) (L O - first)). lra.
Qed.
(*< bound.parts-merged *)

(*> bound.lse-rounded *)
(* ρ rounds LSE, which lies in an interval. The gate is that of a sink whose logit is LSE - ρ(LSE) larger. *)
Theorem bound_lse_rounded {key} (J : list key) (s : key -> R) (b Λ lo hi : R) (ρ : R -> R) :
  J <> [] -> monotone ρ -> lo <= Λ <= hi ->
  sigmoid (ρ lo - b) <= sigmoid (ρ Λ - b) <= sigmoid (ρ hi - b) /\
  sigmoid (ρ (LSE J s) - b) = 1 - alpha_sink J s (b + (LSE J s - ρ (LSE J s))).
Proof.
  intros HJ M [L H]. split.
  - assert (mono : forall x y, x <= y -> sigmoid (x - b) <= sigmoid (y - b)).
    { intros x y Hxy. unfold sigmoid. pose proof (exp_pos (- (x - b))). pose proof (exp_pos (- (y - b))).
      assert (E : exp (- (y - b)) <= exp (- (x - b))).
      { destruct (Req_dec x y) as [-> | N]; [lra | apply Rlt_le, exp_increasing; lra]. }
      unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le_contravar; lra. }
    split; apply mono, M; assumption.
  - rewrite (proj1 (sink_gate J s (fun _ => 0) (b + (LSE J s - ρ (LSE J s))) HJ)).
    f_equal. ring.
Qed.
(*< bound.lse-rounded *)
